//! Events → bytes, along the tables.

use serde_json::{Map, Value};

use super::tables::{Arm, BASE, Field, Kind, Message, Presence};
use super::wire::Backwards;
use super::{DEPTH, EncodeError, SAFE, rules};

/// The bytes of an event.
pub(super) fn event(arm: &Arm, event: &Value) -> Result<Vec<u8>, EncodeError> {
    let mut out = Backwards::default();
    message(&mut out, arm.message, event, 1)?;
    out.enclose(arm.number, 0);
    Ok(out.finish())
}

fn message(
    out: &mut Backwards,
    message: &Message,
    whole: &Value,
    depth: usize,
) -> Result<(), EncodeError> {
    if depth > DEPTH {
        return Err(EncodeError::TooDeep);
    }
    let renewed = rules::renewed(message.rule, whole);
    let whole = renewed.as_ref().unwrap_or(whole);
    let Value::Object(object) = whole else {
        return Err(EncodeError::unfit("an object"));
    };
    rules::admit(message, object)?;
    for field in message.fields.iter().rev() {
        if let Kind::Base = field.kind {
            nested(out, field.number, &BASE, whole, depth)?;
            continue;
        }
        let found = rules::find(message.rule, whole, field);
        match found.filter(|value| !value.is_null() || matches!(field.kind, Kind::Any)) {
            Some(value) => self::field(out, field, value, depth),
            None if field.presence == Presence::Must => Err(EncodeError::missing()),
            None => Ok(()),
        }
        .map_err(|error| error.within(rules::pointer(message.rule, field)))?;
    }
    Ok(())
}

fn nested(
    out: &mut Backwards,
    number: u32,
    inner: &Message,
    value: &Value,
    depth: usize,
) -> Result<(), EncodeError> {
    let end = out.len();
    message(out, inner, value, depth + 1)?;
    out.enclose(number, end);
    Ok(())
}

fn field(
    out: &mut Backwards,
    field: &Field,
    value: &Value,
    depth: usize,
) -> Result<(), EncodeError> {
    let number = field.number;
    let unfit = EncodeError::unfit;
    match field.kind {
        Kind::Text => {
            let text = value.as_str().ok_or_else(|| unfit("text"))?;
            if field.presence != Presence::Must || !text.is_empty() {
                out.bytes_field(number, text.as_bytes());
            }
        }
        Kind::Bool => {
            let truth = value.as_bool().ok_or_else(|| unfit("true or false"))?;
            out.varint_field(number, u64::from(truth));
        }
        Kind::Integer => {
            let integer = integer(value).ok_or_else(|| unfit("an integer within 2^53 - 1"))?;
            out.varint_field(number, integer.cast_unsigned());
        }
        Kind::Word(words) => {
            let place = words.iter().position(|word| value.as_str() == Some(*word));
            match place.and_then(|place| u64::try_from(place).ok()) {
                Some(0) => {}
                Some(place) => out.varint_field(number, place),
                None => return Err(unfit("a word that has a number")),
            }
        }
        Kind::Any | Kind::Some => open_field(out, number, value, depth)?,
        Kind::Object => {
            let object = value.as_object().ok_or_else(|| unfit("an object"))?;
            object_field(out, number, object, depth)?;
        }
        Kind::Message(inner) => nested(out, number, inner, value, depth)?,
        Kind::List(item) => {
            let list = value.as_array().ok_or_else(|| unfit("a list"))?;
            for (place, value) in list.iter().enumerate().rev() {
                self::item(out, number, *item, value, depth)
                    .map_err(|error| error.within(format_args!("/{place}")))?;
            }
        }
        Kind::Base => {}
    }
    Ok(())
}

fn item(
    out: &mut Backwards,
    number: u32,
    kind: Kind,
    value: &Value,
    depth: usize,
) -> Result<(), EncodeError> {
    match (kind, value) {
        (Kind::Message(inner), value) => nested(out, number, inner, value, depth),
        (_, Value::String(text)) => {
            out.bytes_field(number, text.as_bytes());
            Ok(())
        }
        _ => Err(EncodeError::unfit("text")),
    }
}

/// Open data in its wrapper, which says what kind of value it is.
fn open_field(
    out: &mut Backwards,
    number: u32,
    value: &Value,
    depth: usize,
) -> Result<(), EncodeError> {
    let end = out.len();
    match value {
        Value::Null => out.varint_field(1, 0),
        Value::Number(number) => out.double_field(2, number.as_f64().unwrap_or_default()),
        Value::String(text) => out.bytes_field(3, text.as_bytes()),
        Value::Bool(truth) => out.varint_field(4, u64::from(*truth)),
        Value::Object(object) => object_field(out, 5, object, depth)?,
        Value::Array(list) => {
            if depth >= DEPTH {
                return Err(EncodeError::TooDeep);
            }
            let end = out.len();
            for value in list.iter().rev() {
                open_field(out, 1, value, depth + 1)?;
            }
            out.enclose(6, end);
        }
    }
    out.enclose(number, end);
    Ok(())
}

fn object_field(
    out: &mut Backwards,
    number: u32,
    object: &Map<String, Value>,
    depth: usize,
) -> Result<(), EncodeError> {
    if depth >= DEPTH {
        return Err(EncodeError::TooDeep);
    }
    let end = out.len();
    for (key, value) in object.iter().rev() {
        let end = out.len();
        open_field(out, 2, value, depth + 1)?;
        if !key.is_empty() {
            out.bytes_field(1, key.as_bytes());
        }
        out.enclose(1, end);
    }
    out.enclose(number, end);
    Ok(())
}

/// An integer that JavaScript counts with, however JSON spells it.
fn integer(value: &Value) -> Option<i64> {
    let integer = match value.as_i64() {
        Some(integer) => integer,
        None => whole(value.as_f64()?)?,
    };
    (-SAFE..=SAFE).contains(&integer).then_some(integer)
}

/// A double that is an integer, as one.
#[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is within 2^53")]
pub(super) fn whole(double: f64) -> Option<i64> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    (double.fract() == 0.0 && double.abs() <= MOST).then_some(double as i64)
}
