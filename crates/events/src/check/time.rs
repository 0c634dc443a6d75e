//! RFC 3339 timestamps: whether one is well-formed, when it is, and how precise.
//!
//! A date-time with an offset is needed. Leap seconds are read as the second before.

/// A point in time and how it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Nanoseconds since 1970; digits beyond the ninth do not count.
    pub(crate) nanos: i128,
    /// How many digits the fraction of the second has.
    pub(crate) digits: usize,
}

/// Reads a timestamp.
pub(crate) fn rfc3339(text: &str) -> Option<Moment> {
    let mut rest = Digits(text.as_bytes());
    let year = rest.number(4)?;
    rest.expect(b"-")?;
    let month = rest.number(2)?;
    rest.expect(b"-")?;
    let day = rest.number(2)?;
    rest.expect(b"Tt")?;
    let hour = rest.number(2)?;
    rest.expect(b":")?;
    let minute = rest.number(2)?;
    rest.expect(b":")?;
    let second = rest.number(2)?;
    let (fraction, digits) = rest.fraction()?;
    let offset = rest.offset()?;
    let date = jiff::civil::Date::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
    )
    .ok()?;
    if hour > 23 || minute > 59 || second > 60 || !rest.0.is_empty() {
        return None;
    }
    let epoch = jiff::civil::Date::constant(1970, 1, 1);
    let days = i64::from(date.since(epoch).ok()?.get_days());
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second.min(59) - offset * 60;
    Some(Moment { nanos: i128::from(seconds) * 1_000_000_000 + i128::from(fraction), digits })
}

struct Digits<'a>(&'a [u8]);

impl Digits<'_> {
    fn expect(&mut self, any_of: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        if !any_of.contains(&first) {
            return None;
        }
        self.0 = rest;
        Some(first)
    }

    fn number(&mut self, digits: usize) -> Option<i64> {
        (0..digits).try_fold(0, |value, _| {
            self.expect(b"0123456789").map(|digit| value * 10 + i64::from(digit - b'0'))
        })
    }

    /// Nanoseconds, and the number of digits they were written with.
    fn fraction(&mut self) -> Option<(i64, usize)> {
        if self.expect(b".").is_none() {
            return Some((0, 0));
        }
        let mut nanos = 0;
        let mut place = 100_000_000;
        let mut digits = 0;
        while let Some(digit) = self.expect(b"0123456789") {
            nanos += i64::from(digit - b'0') * place;
            place /= 10;
            digits += 1;
        }
        (digits > 0).then_some((nanos, digits))
    }

    /// Minutes east of UTC.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.expect(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(0),
        };
        let hours = self.number(2)?;
        self.expect(b":")?;
        let minutes = self.number(2)?;
        (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> Option<i128> {
        rfc3339(text).map(|moment| moment.nanos)
    }

    #[test]
    fn offsets_and_fractions_are_the_same_moment() {
        assert_eq!(nanos("1970-01-02T00:00:00Z"), Some(86_400_000_000_000));
        assert_eq!(nanos("2026-03-01T12:00:00.250+02:30"), nanos("2026-03-01T09:30:00.25Z"));
        assert_eq!(rfc3339("2026-03-01T12:00:00.250000Z").map(|moment| moment.digits), Some(6));
        assert!(nanos("2024-02-29t23:59:60z") < nanos("2024-03-01T00:00:00Z"));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "now",
            "2026-03-01",
            "2026-03-01T12:00Z",
            "2026-03-01 12:00:00Z",
            "2026-03-01T12:00:00",
            "2026-02-30T12:00:00Z",
            "2026-03-01T24:00:00Z",
            "2026-03-01T12:00:00.Z",
            "2026-03-01T12:00:00Z\n",
            "2026-03-01T12:00:00+0200",
            "2026-13-01T12:00:00Z",
            "+2026-03-01T12:00:00Z",
        ] {
            assert_eq!(rfc3339(text), None, "{text:?}");
        }
    }
}
