//! What somebody who mistyped probably meant.

/// Words are compared up to this length, so that a hostile one costs little.
const LONGEST: usize = 64;

/// The candidate with the smallest edit distance, if it is near enough to be a slip.
///
/// ```
/// use banister_events::text::nearest;
/// assert_eq!(nearest("desicion", ["decision", "reason"]), Some("decision"));
/// assert_eq!(nearest("zzzzzzzzzz", ["decision", "reason"]), None);
/// ```
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word: Vec<char> = word.chars().take(LONGEST).collect();
    let far = |candidate: &'c str| (distance(&word, candidate), candidate);
    let (far, candidate) = candidates.into_iter().map(far).min()?;
    (far < word.len() && far <= 2.max(word.len() / 3)).then_some(candidate)
}

/// How many letters have to change to turn one text into the other.
fn distance(left: &[char], right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, l) in left.iter().enumerate() {
        let mut next = vec![above + 1];
        let mut before = above + 1;
        for ((r, diagonal), over) in right.iter().zip(&row).zip(row.iter().skip(1)) {
            let cost = (diagonal + usize::from(l != r)).min(over + 1).min(before + 1);
            next.push(cost);
            before = cost;
        }
        row = next;
    }
    row.last().copied().unwrap_or(left.len())
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let keys = ["decision", "reason", "risk", "tool"];
        assert_eq!(nearest("desicion", keys), Some("decision"));
        assert_eq!(nearest("tools", keys), Some("tool"));
        assert_eq!(nearest("zzzzzzzzzz", keys), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn distance_counts_letters() {
        for (left, right, letters) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "abd", 1),
            ("ab", "abc", 1),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(&left.chars().collect::<Vec<_>>(), right), letters);
        }
    }
}
