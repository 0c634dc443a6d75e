use proptest::prelude::*;

use super::*;
use crate::activity::arbitrary;

const SENTENCE: [Boundary; 2] = [Boundary::Sentence, Boundary::Completion];

fn cut(boundaries: &[Boundary], text: &str) -> Vec<String> {
    pieces(boundaries, &[text]).into_iter().map(|piece| piece.text).collect()
}

fn pieces(boundaries: &[Boundary], tokens: &[&str]) -> Vec<Piece> {
    let mut coalescer = Coalescer::new(boundaries);
    let mut out: Vec<Piece> = tokens.iter().flat_map(|token| coalescer.push(token)).collect();
    out.push(coalescer.finish());
    out
}

fn letters(text: &str) -> Vec<String> {
    text.chars().map(String::from).collect()
}

fn by_letter(boundaries: &[Boundary], text: &str) -> Vec<Piece> {
    let letters = letters(text);
    pieces(boundaries, &letters.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn sentences_end_where_white_space_follows() {
    let text =
        "It is 3.14, e.g. on v1.2.Final at https://a.example/?q=Berlin! Is it? \"Yes.\" Good.";
    let expected = [
        "It is 3.14, e.g. on v1.2.Final at https://a.example/?q=Berlin! ",
        "Is it? ",
        "\"Yes.\" ",
        "Good.",
    ];
    assert_eq!(cut(&SENTENCE, text), expected);
    let texts: Vec<String> =
        by_letter(&SENTENCE, text).into_iter().map(|piece| piece.text).collect();
    assert_eq!(texts, expected);
}

#[test]
fn a_full_stop_that_the_text_goes_on_behind_ends_nothing() {
    for text in [
        "See Fig. 3 and others",
        "approx. 20 kg",
        "J. Smith and the U.S. Army",
        "z. B. Berlin",
        "1. Install it",
        "Mr.\u{a0}Smith",
        "Wait.what",
    ] {
        assert_eq!(cut(&SENTENCE, text), [text]);
    }
}

#[test]
fn a_sentence_waits_for_what_tells_that_it_ended() {
    let mut coalescer = Coalescer::new(&SENTENCE);
    for token in ["Done", ".", " ", " ", "42", " ", "("] {
        assert_eq!(coalescer.push(token), []);
    }
    let [piece] = &coalescer.push("Files")[..] else { panic!("the sentence has ended") };
    assert_eq!((piece.text.as_str(), &piece.hint), ("Done.  ", &Boundary::Sentence));
    assert_eq!(coalescer.finish().text, "42 (Files");
    assert_eq!(coalescer.finish(), Piece { text: String::new(), hint: Boundary::Completion });
}

#[test]
fn sentences_end_in_every_script() {
    for (text, expected) in [
        ("¿Qué pasa? «¡Nada!» ¿Seguro? Sí.", &["¿Qué pasa? ", "«¡Nada!» ", "¿Seguro? ", "Sí."][..]),
        ("كيف حالك؟ أنا بخير۔ شكرا.", &["كيف حالك؟ ", "أنا بخير۔ ", "شكرا."]),
        (
            "今日は良い。彼は言った。「はい！」次は？終",
            &["今日は良い。", "彼は言った。", "「はい！」", "次は？", "終"],
        ),
        ("नमस्ते। कैसे हो?", &["नमस्ते। ", "कैसे हो?"]),
        ("Ready! 👩‍👩‍👧 Go. 🎉 Yes", &["Ready! ", "👩‍👩‍👧 Go. ", "🎉 Yes"]),
        ("第1．次", &["第1．", "次"]),
    ] {
        assert_eq!(cut(&SENTENCE, text), expected, "{text}");
    }
}

#[test]
fn lines_end_sentences_and_empty_lines_end_paragraphs() {
    let text = "Title\n\n- one\n- two\r\n\r\n    code";
    let all = [Boundary::Sentence, Boundary::Paragraph, Boundary::Completion];
    let hints = |boundaries: &[Boundary]| -> Vec<(String, Boundary)> {
        by_letter(boundaries, text).into_iter().map(|piece| (piece.text, piece.hint)).collect()
    };
    assert_eq!(
        hints(&all),
        [
            ("Title\n\n".to_owned(), Boundary::Paragraph),
            ("- one\n".to_owned(), Boundary::Sentence),
            ("- two\r\n\r\n".to_owned(), Boundary::Paragraph),
            ("    code".to_owned(), Boundary::Completion),
        ]
    );
    assert_eq!(
        hints(&[Boundary::Paragraph]),
        [
            ("Title\n\n".to_owned(), Boundary::Paragraph),
            ("- one\n- two\r\n\r\n".to_owned(), Boundary::Paragraph),
            ("    code".to_owned(), Boundary::Completion),
        ]
    );
    assert_eq!(hints(&SENTENCE)[0].1, Boundary::Sentence);
    assert_eq!(cut(&[Boundary::Completion], text), [text]);
}

#[test]
fn words_keep_their_punctuation_and_space() {
    let all = [Boundary::Word, Boundary::Sentence, Boundary::Paragraph];
    let found: Vec<(String, Boundary)> = by_letter(&all, "Well, done! Go\n\non")
        .into_iter()
        .map(|piece| (piece.text, piece.hint))
        .collect();
    assert_eq!(
        found,
        [
            ("Well, ".to_owned(), Boundary::Word),
            ("done! ".to_owned(), Boundary::Sentence),
            ("Go\n\n".to_owned(), Boundary::Paragraph),
            ("on".to_owned(), Boundary::Completion),
        ]
    );
    let hints = by_letter(&[Boundary::Word], "Well! Go\n\non");
    assert!(hints[..2].iter().all(|piece| piece.hint == Boundary::Word));
}

#[test]
fn words_without_spaces_are_told_apart() {
    let word = [Boundary::Word];
    assert_eq!(
        cut(&word, "今日は天気が良い、「東京」へ行く。OK"),
        ["今日", "は", "天気", "が", "良い、", "「東京」", "へ", "行く。", "OK"]
    );
    assert_eq!(cut(&word, "ภาษาไทยง่าย มาก"), ["ภาษา", "ไทย", "ง่าย ", "มาก"]);
    assert_eq!(cut(&word, "我爱北京。你呢？"), ["我", "爱", "北京。", "你", "呢？"]);
}

#[test]
fn without_a_boundary_text_goes_out_as_it_comes_in_whole_characters() {
    let found =
        pieces(&[Boundary::None], &["Hi ", "👩", "\u{200d}", "👧", "!", "e", "\u{301}", ".\n"]);
    let texts: Vec<&str> = found.iter().map(|piece| piece.text.as_str()).collect();
    assert_eq!(texts, ["Hi", " ", "👩\u{200d}👧", "!", "e\u{301}.\n", ""]);
    assert!(found[..5].iter().all(|piece| piece.hint == Boundary::None));
}

#[test]
fn what_does_not_end_is_cut_at_the_best_place() {
    let words = "word ".repeat(HELD_CHARS);
    for boundaries in [&SENTENCE[..], &[Boundary::Completion]] {
        let found = pieces(boundaries, &[&words]);
        assert!(found.len() > 5);
        let (last, rest) = found.split_last().unwrap();
        assert!(rest.iter().all(|piece| piece.hint == Boundary::None && piece.text.ends_with(' ')));
        assert_eq!(last.hint, Boundary::Completion);
    }
    let sentences = "A first one. And then ".repeat(HELD_CHARS / 16);
    let found = pieces(&[Boundary::Completion], &[&sentences]);
    assert!(found[0].text.ends_with("one. "));
    let flags = "\u{1f1e9}\u{1f1ea}".repeat(HELD_CHARS);
    let found = pieces(&SENTENCE, &[&flags]);
    assert!(found.len() > 1 && found.iter().all(|piece| piece.text.chars().count() % 2 == 0));
}

#[test]
fn a_long_stream_is_gathered_token_by_token() {
    for (boundaries, token) in [
        (&SENTENCE[..], "abcd"),
        (&SENTENCE, "a.b "),
        (&SENTENCE, ". 3 "),
        (&SENTENCE, "    "),
        (&[Boundary::Word], "カタ"),
        (&[Boundary::Completion], "x. Y"),
        (&[Boundary::None], "abc"),
    ] {
        let mut coalescer = Coalescer::new(boundaries);
        let mut length = 0;
        for _ in 0..100_000 {
            length += coalescer.push(token).iter().map(|piece| piece.text.len()).sum::<usize>();
        }
        length += coalescer.finish().text.len();
        assert_eq!(length, 100_000 * token.len());
    }
}

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-zA-Z]{1,6}",
        3 => "[ \n\r\t]{1,3}",
        3 => prop::sample::select(vec![
            ".", "!", "?", "。", "！", "？", "؟", "۔", "।", "．", "…", "\"", "」", "「", ")", "(", "«", "»", "¿", ",", "-", ";",
        ]).prop_map(str::to_owned),
        2 => "[0-9]{1,3}",
        2 => prop::sample::select(vec![
            "今日は天気が", "カタカナ", "北京", "ภาษาไทย", "ง่าย", "👩\u{200d}👧", "👍🏽", "🇩🇪", "🇫🇷", "e\u{301}", "\u{301}",
            "\u{200d}", "한국", "\u{1112}\u{1161}", "नि", "\u{600}", "\u{a0}", "\u{2029}", "\u{85}", "\u{fe0f}", "ﾊﾞ", "が\u{3099}",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

fn boundaries() -> impl Strategy<Value = Vec<Boundary>> {
    prop::sample::subsequence(Boundary::ALL.to_vec(), 0..=5)
}

fn tokens<'a>(text: &'a str, sizes: &[usize]) -> Vec<&'a str> {
    let mut rest = text;
    let mut tokens = Vec::new();
    for size in sizes.iter().cycle() {
        let Some((at, _)) = rest.char_indices().nth(*size) else { break };
        let (token, tail) = rest.split_at(at);
        tokens.push(token);
        rest = tail;
    }
    tokens.push(rest);
    tokens
}

proptest! {
    #[test]
    fn pieces_together_are_the_text(
        text in text(),
        boundaries in boundaries(),
        sizes in prop::collection::vec(1_usize..6, 1..6),
    ) {
        let found = pieces(&boundaries, &tokens(&text, &sizes));
        let together: String = found.iter().map(|piece| piece.text.as_str()).collect();
        prop_assert_eq!(together, text);
        let (last, rest) = found.split_last().unwrap();
        prop_assert_eq!(&last.hint, &Boundary::Completion);
        let named: &[Boundary] = if boundaries.is_empty() { &SENTENCE } else { &boundaries };
        prop_assert!(rest.iter().all(|piece| !piece.text.is_empty() && named.contains(&piece.hint)));
    }

    #[test]
    fn where_pieces_end_does_not_depend_on_the_tokens(
        text in text(),
        repeat in prop_oneof![9 => Just(1_usize), 1 => Just(400)],
        boundaries in boundaries().prop_filter("as it comes", |set| !set.contains(&Boundary::None)),
        sizes in prop::collection::vec(1_usize..9, 1..6),
    ) {
        let text = text.repeat(repeat);
        let whole = pieces(&boundaries, &[&text]);
        prop_assert_eq!(&by_letter(&boundaries, &text), &whole);
        prop_assert_eq!(&pieces(&boundaries, &tokens(&text, &sizes)), &whole);
    }

    #[test]
    fn no_piece_ends_inside_a_character(
        text in text(),
        boundaries in boundaries(),
        sizes in prop::collection::vec(1_usize..6, 1..6),
    ) {
        let found = pieces(&boundaries, &tokens(&text, &sizes));
        let ends: Vec<usize> = icu_segmenter::GraphemeClusterSegmenter::new().segment_str(&text).collect();
        let mut place = 0;
        for piece in found {
            place += piece.text.len();
            prop_assert!(text.is_empty() || ends.contains(&place), "{:?} ends at {}", piece.text, place);
        }
    }
}

/// Up to 200 tokens a case, and the whole state saved after each: one case in four.
#[test]
fn what_is_held_is_bounded_and_can_be_saved() {
    let sizes = prop::collection::vec(1_usize..400, 1..6);
    arbitrary::hold(4, &(text(), boundaries(), sizes), |(text, boundaries, sizes)| {
        let text = text.repeat(600);
        let mut coalescer = Coalescer::new(&boundaries);
        let mut other = coalescer.clone();
        for token in tokens(&text, &sizes).into_iter().take(200) {
            let found = coalescer.push(token);
            other = serde_json::from_str(&serde_json::to_string(&other).unwrap()).unwrap();
            prop_assert_eq!(&found, &other.push(token));
            prop_assert!(found.iter().all(|piece| piece.text.chars().count() <= HELD_CHARS));
            prop_assert!(coalescer.held.chars().count() <= HELD_CHARS);
            prop_assert_eq!(coalescer.held.chars().count(), coalescer.chars);
        }
        Ok(())
    });
}
