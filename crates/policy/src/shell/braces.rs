//! Brace expansion: `a{b,c}` and `{1..3}`.

use super::word::{QuoteKind, WordSymbol};

/// The most words one word becomes.
const MAX_WORDS: usize = 256;

/// Replaces braces by the words they stand for; `None` if those are too many.
pub(super) fn expand(word: Vec<WordSymbol>) -> Option<Vec<Vec<WordSymbol>>> {
    if !word.iter().any(|symbol| is(*symbol, '{')) {
        return Some(vec![word]);
    }
    let mut done = Vec::new();
    let mut waiting = vec![word];
    let mut steps = 0_usize;
    while let Some(word) = waiting.pop() {
        steps += 1;
        if steps > 4 * MAX_WORDS || done.len() + waiting.len() > MAX_WORDS {
            return None;
        }
        match first(&word) {
            None => done.push(word),
            Some((before, parts, after)) => {
                if parts.len() > MAX_WORDS {
                    return None;
                }
                for part in parts.into_iter().rev() {
                    let whole: Vec<WordSymbol> =
                        before.iter().copied().chain(part).chain(after.iter().copied()).collect();
                    waiting.push(whole);
                }
            }
        }
    }
    Some(done)
}

fn is(symbol: WordSymbol, c: char) -> bool {
    symbol == WordSymbol::Char(c, QuoteKind::Bare)
}

/// The first braces that stand for several words: what is before, the parts, what is after.
type Split<'w> = (&'w [WordSymbol], Vec<Vec<WordSymbol>>, &'w [WordSymbol]);

fn first(word: &[WordSymbol]) -> Option<Split<'_>> {
    for (open, _) in word.iter().enumerate().filter(|(_, symbol)| is(**symbol, '{')).take(64) {
        let inside = word.get(open + 1..)?;
        let mut depth = 0_usize;
        let mut commas = Vec::new();
        let mut close = None;
        for (at, symbol) in inside.iter().enumerate() {
            if is(*symbol, '{') {
                depth += 1;
            } else if is(*symbol, '}') {
                if depth == 0 {
                    close = Some(at);
                    break;
                }
                depth -= 1;
            } else if depth == 0 && is(*symbol, ',') {
                commas.push(at);
            }
        }
        let Some(close) = close else { continue };
        let (before, after) = (word.get(..open)?, inside.get(close + 1..)?);
        let inside = inside.get(..close)?;
        if commas.is_empty() {
            if let Some(parts) = range(inside) {
                return Some((before, parts, after));
            }
            continue;
        }
        let mut parts = Vec::new();
        let mut start = 0;
        for end in commas.into_iter().chain([close]) {
            parts.push(inside.get(start..end)?.to_vec());
            start = end + 1;
        }
        return Some((before, parts, after));
    }
    None
}

fn range(inside: &[WordSymbol]) -> Option<Vec<Vec<WordSymbol>>> {
    let text: Option<String> = inside
        .iter()
        .map(|symbol| match symbol {
            WordSymbol::Char(c, QuoteKind::Bare) => Some(*c),
            _ => None,
        })
        .collect();
    let text = text?;
    let mut ends = text.split("..");
    let (from, to, step) = (ends.next()?, ends.next()?, ends.next());
    if ends.next().is_some() {
        return None;
    }
    let step = step.map_or(Some(1), |step| step.parse::<i64>().ok())?.unsigned_abs().max(1);
    let step = usize::try_from(step).ok()?;
    let word = |text: String| {
        text.chars().map(|c| WordSymbol::Char(c, QuoteKind::Bare)).collect::<Vec<_>>()
    };
    let letter = |text: &str| {
        let mut chars = text.chars();
        let c = chars.next().filter(char::is_ascii_alphabetic)?;
        chars.next().is_none().then_some(c)
    };
    if let (Some(from), Some(to)) = (letter(from), letter(to)) {
        let (low, high) = (from.min(to), from.max(to));
        let mut letters: Vec<Vec<WordSymbol>> =
            (low..=high).step_by(step).map(|c| word(c.to_string())).collect();
        if from > to {
            letters.reverse();
        }
        return Some(letters);
    }
    let (first, last) = (from.parse::<i64>().ok()?, to.parse::<i64>().ok()?);
    let padded = |text: &str| {
        text.trim_start_matches('-').len() > 1 && text.trim_start_matches('-').starts_with('0')
    };
    let width = if padded(from) || padded(to) { from.len().max(to.len()) } else { 0 };
    let count = last.abs_diff(first);
    if count > 4 * MAX_WORDS as u64 {
        // Too many: the caller sees more parts than it takes.
        return Some(vec![Vec::new(); MAX_WORDS + 1]);
    }
    let (low, high) = (first.min(last), first.max(last));
    let mut numbers: Vec<Vec<WordSymbol>> =
        (low..=high).step_by(step).map(|number| word(format!("{number:0width$}"))).collect();
    if first > last {
        numbers.reverse();
    }
    Some(numbers)
}
