//! The nearest word of a list: what somebody who mistyped probably meant.

/// Returns the candidate with the smallest edit distance, if it is near enough to be a slip.
pub(crate) fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    // Words are compared up to this length, so that a hostile key costs little.
    let word: Vec<char> = word.chars().take(64).collect();
    candidates
        .iter()
        .map(|candidate| (distance(&word, candidate), *candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= 2.max(candidate.len() / 3))
        .map(|(_, candidate)| candidate)
}

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
    use super::nearest;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let keys = ["decision", "reason", "risk", "tool"];
        assert_eq!(nearest("desicion", &keys), Some("decision"));
        assert_eq!(nearest("tools", &keys), Some("tool"));
        assert_eq!(nearest("zzzzzzzzzz", &keys), None);
        assert_eq!(nearest("x", &[]), None);
    }
}
