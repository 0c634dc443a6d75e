//! Names of files as shell patterns: `*` is any run of characters, `?` and a class in brackets are any one.

/// Whether a name as a shell pattern can mean a given name. Case is ignored: some file systems do.
pub(crate) fn covers(pattern: &str, name: &str) -> bool {
    if !is_pattern(pattern) {
        return pattern.eq_ignore_ascii_case(name);
    }
    if pattern.len() > MAX_NAME {
        return true;
    }
    overlap(&symbols(pattern), &symbols(name))
}

/// No file has a name of more than 255 bytes. A longer text is a pattern, which may fit anything, or no name at all.
pub(crate) const MAX_NAME: usize = 512;

/// One place in a pattern of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameSymbol {
    One(char),
    AnyOne,
    AnyRun,
}

/// Reads a name as a pattern. A class in brackets counts as any one character, which can only widen it.
pub(crate) fn symbols(pattern: &str) -> Vec<NameSymbol> {
    let mut symbols = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        symbols.push(match c {
            '*' => NameSymbol::AnyRun,
            '?' => NameSymbol::AnyOne,
            '[' if chars.as_str().contains(']') => {
                chars.by_ref().skip(1).find(|c| *c == ']');
                NameSymbol::AnyOne
            }
            c => NameSymbol::One(c.to_ascii_lowercase()),
        });
    }
    symbols
}

/// Whether some name fits both patterns.
pub(crate) fn overlap(left: &[NameSymbol], right: &[NameSymbol]) -> bool {
    // `reach[j]` says whether the left symbols so far and the first `j` right ones can spell the same text.
    let mut reach: Vec<bool> = Vec::with_capacity(right.len() + 1);
    reach.push(true);
    for symbol in right {
        reach.push(reach.last() == Some(&true) && *symbol == NameSymbol::AnyRun);
    }
    for l in left {
        let mut next = vec![reach.first() == Some(&true) && *l == NameSymbol::AnyRun];
        for (r, pair) in right.iter().zip(reach.windows(2)) {
            let (diagonal, over) = match pair {
                [diagonal, over] => (*diagonal, *over),
                _ => (false, false),
            };
            let before = next.last() == Some(&true);
            next.push(match (l, r) {
                (NameSymbol::AnyRun, _) | (_, NameSymbol::AnyRun) => diagonal || over || before,
                (NameSymbol::One(a), NameSymbol::One(b)) => diagonal && a == b,
                _ => diagonal,
            });
        }
        reach = next;
    }
    reach.last() == Some(&true)
}

/// Whether a plain name fits a pattern.
pub(crate) fn fits(pattern: &[NameSymbol], name: &str) -> bool {
    let (mut pattern, mut rest) = (pattern, name.chars());
    // Where to go on if what follows the last wildcard does not fit: it takes one character more.
    let mut retry: Option<(&[NameSymbol], std::str::Chars<'_>)> = None;
    loop {
        let mut ahead = rest.clone();
        let (fits_here, next) = match (pattern.split_first(), ahead.next()) {
            (Some((NameSymbol::AnyRun, next)), _) => {
                retry = Some((next, rest.clone()));
                pattern = next;
                continue;
            }
            (Some((NameSymbol::AnyOne, next)), Some(_)) => (true, next),
            (Some((NameSymbol::One(wanted), next)), Some(c)) => {
                (*wanted == c.to_ascii_lowercase(), next)
            }
            (None, None) => return true,
            _ => (false, pattern),
        };
        if fits_here {
            (pattern, rest) = (next, ahead);
        } else if let Some((after, mut from)) = retry.take()
            && from.next().is_some()
        {
            (pattern, rest) = (after, from.clone());
            retry = Some((after, from));
        } else {
            return false;
        }
    }
}

/// Whether a name has signs of a pattern in it.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}
