//! Three letters in a row that every credential has somewhere. Most texts have none of them, and a look at each letter is
//! much quicker than the patterns: a text that has some gets the closer look.
//!
//! Case does not count here. A digit is any digit, and `:`, `/` and `=` are the same.

/// What credentials that go by a name have, then those of [`super::tokens`], in its order. `#` is a digit.
const MARKS: &[&[u8; 3]] = &[
    b"---", b"hp_", b"ho_", b"hu_", b"hs_", b"hr_", b"ub_", b"glp", b"sk-", b"kia", b"sia", b"xox",
    b"eyj", b"riz", b"rer", b"x-a", b"ssw", b"ecr", b"pik", b"pi_", b"e_k", b"s_t", b"h_t", b"://",
    b"sh-", //
    b"e-s", b"tt#", b"gzx", b"ey=", b"ig=", b"cio", b"dap", b"_v#", b"/we", b"kr_", b"fm#", b"fo#",
    b"at-", b"dt-", b"rt-", b"tr-", b"bt-", b"tt-", b"ft-", b"mt-", b"nt-", b"as-", b"ct-", b"aiz",
    b"spx", b"ya#", b"sa_", b"lc_", b"sk_", b"sv#", b"hvs", b"hvb", b"hvr", b"hf_", b"in_", b"-us",
    b"ey-", b"ak-", b"tn_", b"pm_", b"lx-", b"psc", b"pi-", b"r#_", b"yge", b"ys_", b"yu_", b"shp",
    b"pp-", b"sq#", b"k_l", b"k_t", b"whs", b"bp_", b":aa", b"sk#", b"ska", b"skb", b"skc", b"skd",
    b"ske", b"skf", b"ai-",
];

/// What a byte counts as: nothing, a letter, or one of the signs.
const fn class(byte: u8) -> u16 {
    match byte {
        b'a'..=b'z' => (byte - b'a') as u16 + 1,
        b'A'..=b'Z' => (byte - b'A') as u16 + 1,
        b'_' => 27,
        b'-' => 28,
        b':' | b'/' | b'=' => 29,
        b'0'..=b'9' | b'#' => 30,
        b'.' => DOT,
        _ => 0,
    }
}

const DOT: u16 = 31;
/// Letters, `_` and `-`, and digits: what words are made of.
const fn is_word(class: u16) -> bool {
    matches!(class, 1..=28 | 30)
}

/// What each byte counts as. `#` itself is no digit, which costs a closer look at most.
static CLASSES: [u8; 256] = classes();

#[expect(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "at compile time")]
const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = class(byte as u8) as u8;
        byte += 1;
    }
    classes
}

/// One bit for each three classes in a row.
static ROWS: [u64; 512] = rows();

#[expect(clippy::indexing_slicing, reason = "at compile time")]
const fn rows() -> [u64; 512] {
    let mut rows = [0; 512];
    let mut mark = 0;
    while mark < MARKS.len() {
        let [a, b, c] = *MARKS[mark];
        let row = class(a) << 10 | class(b) << 5 | class(c);
        rows[(row >> 6) as usize] |= 1 << (row & 63);
        mark += 1;
    }
    // Parts of tokens are joined by dots; sentences have a space behind theirs.
    let mut pair: u16 = 0;
    while pair < 32 * 32 {
        let (before, behind) = (pair >> 5, pair & 31);
        if is_word(before) && is_word(behind) {
            let row = before << 10 | DOT << 5 | behind;
            rows[(row >> 6) as usize] |= 1 << (row & 63);
        }
        pair += 1;
    }
    rows
}

/// Whether there is anything in a text that a credential has.
pub(super) fn any(text: &str) -> bool {
    let mut row: usize = 0;
    for byte in text.bytes() {
        let class = CLASSES.get(usize::from(byte)).copied().unwrap_or_default();
        row = (row << 5 | usize::from(class)) & 0x7fff;
        if ROWS.get(row >> 6).is_some_and(|bits| bits >> (row & 63) & 1 == 1) {
            return true;
        }
    }
    // These two are other cases of s and k.
    !text.is_ascii() && text.contains(['\u{17f}', '\u{212a}'])
}
