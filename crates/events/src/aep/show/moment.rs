//! Times and durations, readable. Units are the symbols that all languages share; times are UTC, since this crate
//! knows neither the clock nor where the reader is.

use crate::check::time::rfc3339;

/// Milliseconds as what people say. Nothing for what is no number of milliseconds.
pub(super) fn duration(milliseconds: f64) -> Option<String> {
    // Beyond that a number of milliseconds is a mistake, and is shown as the number it is.
    if !(0.0..1e15).contains(&milliseconds) {
        return None;
    }
    if milliseconds < 1000.0 {
        return Some(format!("{} ms", two_digits(milliseconds)));
    }
    let seconds = milliseconds / 1000.0;
    if seconds < 60.0 {
        return Some(format!("{} s", two_digits(seconds)));
    }
    let (minutes, seconds) = ((seconds / 60.0).floor(), seconds % 60.0);
    let (hours, minutes) = ((minutes / 60.0).floor(), minutes % 60.0);
    let (days, hours) = ((hours / 24.0).floor(), hours % 24.0);
    Some(match (days > 0.0, hours > 0.0) {
        (true, _) => format!("{days} d {hours} h {minutes} min"),
        (false, true) => format!("{hours} h {minutes} min {} s", seconds.floor()),
        (false, false) => format!("{minutes} min {} s", (seconds * 10.0).floor() / 10.0),
    })
}

/// At most two digits after the point, cut, not rounded: 59.999 s must not read 60 s.
fn two_digits(number: f64) -> f64 {
    (number * 100.0).floor() / 100.0
}

/// The time an RFC 3339 text or a written epoch names.
pub(super) fn of_text(said: &str) -> Option<String> {
    let said = said.trim();
    match rfc3339(said) {
        Some(moment) => utc(moment.nanos),
        None => said.parse().ok().and_then(of_epoch),
    }
}

/// The time of an epoch in seconds, milliseconds, microseconds or nanoseconds: whichever falls near our days.
pub(super) fn of_epoch(number: f64) -> Option<String> {
    let nanos_per_unit = match number.abs() {
        size if size < 1e11 => 1_000_000_000.0,
        size if size < 1e14 => 1_000_000.0,
        size if size < 1e17 => 1000.0,
        size if size < 1e20 => 1.0,
        _ => return None,
    };
    #[expect(clippy::cast_possible_truncation, reason = "at most 1e20, which an i128 holds")]
    let nanos = (number * nanos_per_unit) as i128;
    utc(nanos)
}

fn utc(nanos: i128) -> Option<String> {
    let millis = nanos.div_euclid(1_000_000);
    let moment = jiff::Timestamp::from_millisecond(i64::try_from(millis).ok()?).ok()?;
    jiff::fmt::strtime::format("%Y-%m-%d %H:%M:%S%.f UTC", moment).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_readable_and_never_round_up_into_the_next_unit() {
        for (milliseconds, said) in [
            (0.0, "0 ms"),
            (0.456, "0.45 ms"),
            (999.999, "999.99 ms"),
            (1000.0, "1 s"),
            (59_999.0, "59.99 s"),
            (60_000.0, "1 min 0 s"),
            (83_560.0, "1 min 23.5 s"),
            (3_600_000.0, "1 h 0 min 0 s"),
            (86_399_999.0, "23 h 59 min 59 s"),
            (90_061_000.0, "1 d 1 h 1 min"),
        ] {
            assert_eq!(duration(milliseconds).as_deref(), Some(said));
        }
        for nonsense in [-1.0, f64::NAN, f64::INFINITY, 1e16] {
            assert_eq!(duration(nonsense), None);
        }
    }

    #[test]
    fn times_are_read_in_every_unit_and_shown_in_utc() {
        let said = Some("2026-08-20 09:12:44 UTC".to_owned());
        assert_eq!(of_text("2026-08-20T11:12:44+02:00"), said);
        for epoch in [1_787_217_164.0, 1_787_217_164e3, 1_787_217_164e6, 1_787_217_164e9] {
            assert_eq!(of_epoch(epoch), said);
        }
        assert_eq!(of_text("1787217164"), said);
        assert_eq!(of_epoch(1_787_217_164_120.0), Some("2026-08-20 09:12:44.12 UTC".to_owned()));
        assert_eq!(of_epoch(-1.0), Some("1969-12-31 23:59:59 UTC".to_owned()));
        for nonsense in ["", "yesterday", "NaN", "inf", "1e300", "2026-02-30T00:00:00Z"] {
            assert_eq!(of_text(nonsense), None, "{nonsense}");
        }
    }
}
