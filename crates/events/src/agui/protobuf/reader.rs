//! Bytes → events, along the tables.
//!
//! A field that comes again is merged as protobuf says: of texts and numbers the last one counts, lists grow, messages
//! gain fields. So a message has its shape only at its end, when `finish` gives it.

use serde_json::{Map, Value};

use super::tables::{Arm, BASE, Field, Kind, Message, Presence, numbered};
use super::wire::{Fields, Payload};
use super::writer::whole;
use super::{DecodeError, SAFE, VALUES, rules};

type Object = Map<String, Value>;

/// The event that bytes hold; none where only later versions know it.
pub(super) fn event(bytes: &[u8]) -> Result<Option<Value>, DecodeError> {
    let mut reader = Reader { left: VALUES };
    let mut object = Object::new();
    let mut held: Option<&Arm> = None;
    let mut future = None;
    let mut fields = Fields::new(bytes, 0)?;
    while let Some((number, payload)) = fields.next()? {
        match (numbered(number), payload) {
            (Some(arm), Payload::Bytes(bytes)) => {
                if held.is_some_and(|held| held.number != number) {
                    return Err(DecodeError::Several);
                }
                held = Some(arm);
                reader.message(arm.message, bytes, &mut object, 1)?;
            }
            (Some(_), _) => return Err(DecodeError::Encoding),
            (None, Payload::Bytes(bytes)) => {
                future = Some(future.unwrap_or(true) && is_message(bytes));
            }
            (None, _) => {}
        }
    }
    let Some(arm) = held else {
        return if future == Some(true) { Ok(None) } else { Err(DecodeError::NoEvent) };
    };
    let held = arm.kind.name();
    match object.get("type").and_then(Value::as_str) {
        None => return Err(DecodeError::NoBase),
        Some(declared) if declared != held => return Err(DecodeError::Mismatch { held }),
        Some(_) => {}
    }
    reader.finish(arm.message, &mut object)?;
    Ok(Some(Value::Object(object)))
}

/// Whether bytes are a message, of whatever fields.
fn is_message(bytes: &[u8]) -> bool {
    let Ok(mut fields) = Fields::new(bytes, 1) else { return false };
    loop {
        match fields.next() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

struct Reader {
    /// How many more values the event may have.
    left: usize,
}

impl Reader {
    fn count(&mut self) -> Result<(), DecodeError> {
        self.left = self.left.checked_sub(1).ok_or(DecodeError::TooMany)?;
        Ok(())
    }

    /// Adds what a message says to what is known of it.
    fn message(
        &mut self,
        message: &Message,
        bytes: &[u8],
        object: &mut Object,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let mut fields = Fields::new(bytes, depth)?;
        while let Some((number, payload)) = fields.next()? {
            if let Some(field) = message.fields.iter().find(|field| field.number == number) {
                self.count()?;
                self.field(field, payload, object, depth)?;
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &Field,
        payload: Payload<'_>,
        object: &mut Object,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let name = field.name;
        let value = match (field.kind, payload) {
            (Kind::Text, Payload::Bytes(bytes)) => Value::String(text(bytes)?),
            (Kind::Bool, Payload::Varint(number)) => Value::Bool(number != 0),
            (Kind::Integer, Payload::Varint(number)) => {
                let number = number.cast_signed();
                if !(-SAFE..=SAFE).contains(&number) {
                    return Err(DecodeError::Integer);
                }
                Value::from(number)
            }
            (Kind::Word(words), Payload::Varint(number)) => Value::String(word(words, number)),
            (Kind::Any | Kind::Some, Payload::Bytes(bytes)) => {
                let mut slot = object.get_mut(name).map(Value::take);
                self.open(bytes, &mut slot, depth)?;
                let Some(value) = slot else { return Ok(()) };
                value
            }
            (Kind::Object | Kind::Message(_), Payload::Bytes(bytes)) => {
                let known = object.entry(name).or_insert_with(|| Value::Object(Object::new()));
                return match (field.kind, known) {
                    (Kind::Message(inner), Value::Object(known)) => {
                        self.message(inner, bytes, known, depth + 1)
                    }
                    (_, Value::Object(known)) => self.object(bytes, known, depth + 1),
                    // A name belongs to one field, so that it is an object already.
                    _ => Ok(()),
                };
            }
            (Kind::Base, Payload::Bytes(bytes)) => {
                self.message(&BASE, bytes, object, depth + 1)?;
                return self.fill(&BASE, object);
            }
            (Kind::List(item), Payload::Bytes(bytes)) => {
                let item = self.item(*item, bytes, depth)?;
                // A list of things that only later versions know is there nevertheless.
                let list = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                if let (Some(item), Value::Array(list)) = (item, list) {
                    list.push(item);
                }
                return Ok(());
            }
            // In another encoding it is another field, which is not known.
            _ => return Ok(()),
        };
        object.insert(name.to_owned(), value);
        Ok(())
    }

    /// One item of a list; none where only later versions know it.
    fn item(
        &mut self,
        kind: Kind,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Option<Value>, DecodeError> {
        let Kind::Message(inner) = kind else { return Ok(Some(Value::String(text(bytes)?))) };
        let mut object = Object::new();
        self.message(inner, bytes, &mut object, depth + 1)?;
        Ok(self.finish(inner, &mut object)?.then_some(Value::Object(object)))
    }

    /// Completes a message of which no more will come; false where only later versions know it.
    fn finish(&mut self, message: &Message, object: &mut Object) -> Result<bool, DecodeError> {
        self.fill(message, object)?;
        for field in message.fields {
            if let Kind::Message(inner) = field.kind
                && let Some(Value::Object(object)) = object.get_mut(field.name)
                && !self.finish(inner, object)?
            {
                return Ok(false);
            }
        }
        rules::settle(message.rule, object)
    }

    /// Adds what the wire leaves out.
    fn fill(&mut self, message: &Message, object: &mut Object) -> Result<(), DecodeError> {
        for field in message.fields {
            let value = match (field.kind, field.presence) {
                (Kind::Text, Presence::Must) => Value::String(String::new()),
                (Kind::Word(words), _) => Value::String(word(words, 0)),
                (Kind::List(_), Presence::Must | Presence::Filled) => Value::Array(Vec::new()),
                _ => continue,
            };
            if !object.contains_key(field.name) {
                self.count()?;
                object.insert(field.name.to_owned(), value);
            }
        }
        Ok(())
    }

    /// Adds what the wrapper of open data says; of several kinds, the last one counts.
    fn open(
        &mut self,
        bytes: &[u8],
        slot: &mut Option<Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let mut fields = Fields::new(bytes, depth)?;
        while let Some(field) = fields.next()? {
            match field {
                (1, Payload::Varint(_)) => *slot = Some(Value::Null),
                (2, Payload::Double(double)) => *slot = Some(number(double)?),
                (3, Payload::Bytes(bytes)) => *slot = Some(Value::String(text(bytes)?)),
                (4, Payload::Varint(number)) => *slot = Some(Value::Bool(number != 0)),
                (5, Payload::Bytes(bytes)) => {
                    let mut object = match slot.take() {
                        Some(Value::Object(known)) => known,
                        _ => Object::new(),
                    };
                    self.object(bytes, &mut object, depth + 1)?;
                    *slot = Some(Value::Object(object));
                }
                (6, Payload::Bytes(bytes)) => {
                    let mut list = match slot.take() {
                        Some(Value::Array(known)) => known,
                        _ => Vec::new(),
                    };
                    self.list(bytes, &mut list, depth + 1)?;
                    *slot = Some(Value::Array(list));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn object(
        &mut self,
        bytes: &[u8],
        object: &mut Object,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let mut entries = Fields::new(bytes, depth)?;
        while let Some(entry) = entries.next()? {
            let (1, Payload::Bytes(entry)) = entry else { continue };
            let (mut key, mut slot) = (String::new(), None);
            let mut fields = Fields::new(entry, depth)?;
            while let Some(field) = fields.next()? {
                match field {
                    (1, Payload::Bytes(bytes)) => key = text(bytes)?,
                    (2, Payload::Bytes(bytes)) => self.open(bytes, &mut slot, depth)?,
                    _ => {}
                }
            }
            if let Some(value) = slot {
                self.count()?;
                object.insert(key, value);
            }
        }
        Ok(())
    }

    fn list(
        &mut self,
        bytes: &[u8],
        list: &mut Vec<Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let mut items = Fields::new(bytes, depth)?;
        while let Some(item) = items.next()? {
            let (1, Payload::Bytes(bytes)) = item else { continue };
            let mut slot = None;
            self.open(bytes, &mut slot, depth)?;
            self.count()?;
            // A value of no kind keeps its place.
            list.push(slot.unwrap_or_default());
        }
        Ok(())
    }
}

fn text(bytes: &[u8]) -> Result<String, DecodeError> {
    simdutf8::basic::from_utf8(bytes).map(str::to_owned).map_err(|_| DecodeError::Text)
}

/// A word by its number, or the number itself, which no word is.
fn word(words: &[&str], number: u64) -> String {
    // Only 32 bits of it count, as for every enum.
    let number = u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
    let word = usize::try_from(number).ok().and_then(|place| words.get(place));
    word.map_or_else(|| number.cast_signed().to_string(), |word| (*word).to_owned())
}

fn number(double: f64) -> Result<Value, DecodeError> {
    if !double.is_finite() {
        return Err(DecodeError::NotFinite);
    }
    Ok(whole(double).map_or_else(|| Value::from(double), Value::from))
}
