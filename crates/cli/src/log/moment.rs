//! A moment as people give it: RFC 3339, a date (its beginning in UTC), or how long ago, such as `90m`, `12h` or `7d`.

use banister_gateway::clock::Clock;
use jiff::{SignedDuration, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    At(Timestamp),
    Ago(SignedDuration),
}

impl Moment {
    pub(crate) fn time(self) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::Ago(ago) => Clock::System.now().checked_sub(ago).unwrap_or(Timestamp::MIN),
        }
    }
}

impl std::str::FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(time) = text.parse() {
            return Ok(Self::At(time));
        }
        if let Ok(date) = text.parse::<jiff::civil::Date>()
            && let Ok(start) = date.to_zoned(jiff::tz::TimeZone::UTC)
        {
            return Ok(Self::At(start.timestamp()));
        }
        let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400), ('w', 604_800)];
        units
            .iter()
            .find_map(|(unit, seconds)| {
                let number: u32 = text.strip_suffix(*unit)?.parse().ok()?;
                Some(Self::Ago(SignedDuration::from_secs(i64::from(number) * seconds)))
            })
            .ok_or_else(|| {
                "give a time like 2026-05-04T10:00:00Z, a date, or how long ago, like 90m, 12h or 7d"
                    .to_owned()
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_dates_and_ages_are_read_and_nothing_else() {
        let at = |text: &str| Ok(Moment::At(text.parse().unwrap()));
        assert_eq!("2026-05-04T12:00:00+02:00".parse(), at("2026-05-04T10:00:00Z"));
        assert_eq!("2026-05-04".parse(), at("2026-05-04T00:00:00Z"));
        assert_eq!("90m".parse(), Ok(Moment::Ago(SignedDuration::from_mins(90))));
        assert_eq!("7d".parse(), Ok(Moment::Ago(SignedDuration::from_hours(168))));
        for wrong in ["", "d", "-1d", "yesterday", "2026-13-01", "99999999999w"] {
            assert!(wrong.parse::<Moment>().is_err(), "{wrong}");
        }
    }
}
