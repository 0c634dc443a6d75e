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
    usual(text.as_bytes()).or_else(|| any(text))
}

/// The form that nearly all timestamps have, `2026-01-31T12:00:00.000Z`; none where it is another, or no time at all.
fn usual(text: &[u8]) -> Option<Moment> {
    let &[
        y1,
        y2,
        y3,
        y4,
        b'-',
        o1,
        o2,
        b'-',
        d1,
        d2,
        b'T',
        h1,
        h2,
        b':',
        m1,
        m2,
        b':',
        s1,
        s2,
        b'.',
        f1,
        f2,
        f3,
        b'Z',
    ] = text
    else {
        return None;
    };
    let digits = [y1, y2, y3, y4, o1, o2, d1, d2, h1, h2, m1, m2, s1, s2, f1, f2, f3];
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |byte: u8| i64::from(byte & 0x0f);
    let two = |ten, one| digit(ten) * 10 + digit(one);
    let (year, month, day) = (two(y1, y2) * 100 + two(y3, y4), two(o1, o2), two(d1, d2));
    let (hour, minute, second) = (two(h1, h2), two(m1, m2), two(s1, s2));
    // Leap seconds and what is no time are left to the thorough reader.
    if !(1..=12).contains(&month)
        || !(1..=days_in(year, month)).contains(&day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let millis = seconds * 1000 + digit(f1) * 100 + two(f2, f3);
    Some(Moment { nanos: i128::from(millis) * 1_000_000, digits: 3 })
}

fn any(text: &str) -> Option<Moment> {
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
    if !rest.0.is_empty()
        || !(1..=12).contains(&month)
        || !(1..=days_in(year, month)).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    let seconds =
        days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second.min(59) - offset * 60;
    // A second 60 is only ever the last of a day, as UTC has it.
    if second == 60 && seconds.rem_euclid(86_400) != 86_399 {
        return None;
    }
    Some(Moment { nanos: i128::from(seconds) * 1_000_000_000 + i128::from(fraction), digits })
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970. Years are counted from March, so that the leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let years = if month > 2 { year } else { year - 1 };
    let months = (month + 9) % 12;
    let leaps = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    years * 365 + leaps + (months * 153 + 2) / 5 + day - 719_469
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
    fn every_day_is_counted_as_another_calendar_counts_it() {
        let mut date = jiff::civil::date(1890, 1, 1);
        let epoch = jiff::civil::date(1970, 1, 1);
        while date.year() < 2110 {
            let days = i128::from(date.since(epoch).unwrap().get_days());
            assert_eq!(nanos(&format!("{date}T00:00:00Z")), Some(days * 86_400_000_000_000));
            let usual = format!("{date}T23:59:58.007Z");
            assert_eq!(rfc3339(&usual), any(&usual));
            date = date.tomorrow().unwrap();
        }
        assert_eq!(nanos("2100-02-29T00:00:00Z"), None);
        assert!(nanos("2000-02-29T00:00:00Z").is_some());
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
