use proptest::prelude::*;

use super::*;

#[test]
fn credentials_leave_and_their_names_too() {
    for secret in [
        "export API_KEY=abc123",
        "git clone https://me:hunter2@example.org/x.git",
        "GITHUB_TOKEN ghp_abcdefghijklmnopqrstuv",
        "--password 'x y' password='x y'",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
        "key AKIAIOSFODNN7EXAMPLE",
    ] {
        let clean = redact(secret);
        assert!(clean.contains("[redacted]"), "{secret} → {clean}");
        for leaked in ["hunter2", "abc123", "ghp_", "MIIE", "AKIA", "='x y'"] {
            assert!(!clean.contains(leaked), "{secret} → {clean}");
        }
    }
}

#[test]
fn ordinary_commands_are_left_alone() {
    for command in ["cargo test -p core", "grep -rn secret_santa src", "ls task-based", "echo sk-y"]
    {
        assert_eq!(redact(command), command);
    }
}

#[test]
fn hidden_characters_are_shown() {
    assert_eq!(visible("a\u{200b}b\u{1b}[31m"), "a⟨U+200B⟩b⟨U+001B⟩[31m");
    assert_eq!(one_line("a\nb"), "a\\nb");
    assert_eq!(visible("é漢字👍"), "é漢字👍");
}

#[test]
fn shortening_counts_characters_not_bytes() {
    assert_eq!(shorten("漢字漢字", 3), "漢字…");
    assert_eq!(shorten("", 0), "");
}

/// Texts with credentials in them, and what must not be seen of those.
fn confessions() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => "[a-z]{1,9}[ .,\n]",
        1 => Just("password = 'hunter 2' ".to_owned()),
        1 => Just("API_KEY=hunter2&x ".to_owned()),
        1 => Just("Authorization: Bearer hunter2.x ".to_owned()),
        1 => Just("https://me:hunter2@example.org/x ".to_owned()),
        1 => Just("ghp_hunter2hunter2hunter2 ".to_owned()),
        1 => Just("-----BEGIN PRIVATE KEY-----\nhunter2\nhunter2\n-----END PRIVATE KEY-----\n".to_owned()),
        1 => Just("漢字。é ".to_owned()),
    ];
    prop::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn a_text_in_pieces_is_redacted_as_a_whole_one(text in confessions(), cuts in prop::collection::vec(1_usize..9, 1..9)) {
        let mut redactor = Redactor::default();
        let mut shown = String::new();
        let letters: Vec<char> = text.chars().collect();
        let mut rest = letters.as_slice();
        for size in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, tail) = rest.split_at((*size).min(rest.len()));
            shown += &redactor.push(&piece.iter().collect::<String>());
            prop_assert!(!shown.contains("hunter"), "{shown}");
            rest = tail;
        }
        shown += &redactor.finish();
        prop_assert_eq!(shown, redact(&text));
    }
}

#[test]
fn a_key_file_of_any_length_is_left_out_to_its_end() {
    let mut redactor = Redactor::default();
    let mut shown = redactor.push("here: -----BEGIN RSA PRIVATE KEY-----\n");
    for _ in 0..1_000 {
        shown += &redactor.push("MIIEhunter2hunter2hunter2\n");
    }
    for piece in ["-----E", "ND RSA PRIVATE KEY-----", "\nthat was ", "it"] {
        shown += &redactor.push(piece);
    }
    shown += &redactor.finish();
    assert_eq!(shown, "here: [redacted]\nthat was it");
}

#[test]
fn what_cannot_become_a_credential_is_shown_at_once() {
    let mut redactor = Redactor::default();
    assert_eq!(redactor.push("All is well. "), "All is well. ");
    assert_eq!(redactor.push("これは日本語です。"), "これは日本語です。");
}

/// A token of each class. They are put together here, so that no file holds anything that looks like one.
fn tokens() -> Vec<(&'static str, String)> {
    let hex = |length: usize| "0a1b2c3d4e5f6789".chars().cycle().take(length).collect::<String>();
    let any = |length: usize| "Ab3dEf6hIj9kLmN0".chars().cycle().take(length).collect::<String>();
    let upper = |length: usize| "Q2W3E4R5".chars().cycle().take(length).collect::<String>();
    vec![
        ("age secret key", format!("AGE-SECRET-KEY-1{}", upper(58))),
        ("Airtable token", format!("pat{}.{}", any(14), hex(64))),
        ("Atlassian token", format!("ATATT3{}=", any(180))),
        ("AWS temporary token", format!("FwoGZXIvYXdz{}==", any(120))),
        ("Azure connection string", format!("AccountKey={}==", any(86))),
        ("Azure shared access key", format!("SharedAccessKey={}=", any(43))),
        ("Azure shared access signature", format!("sig={}%3D", any(43))),
        ("crates.io token", format!("cio{}", any(32))),
        ("Databricks token", format!("dapi{}-2", hex(32))),
        ("DigitalOcean token", format!("dop_v1_{}", hex(64))),
        ("Discord bot token", format!("M{}.{}.{}", any(25), any(6), any(38))),
        ("Discord webhook", format!("discord.com/api/webhooks/123456789012345678/{}", any(68))),
        ("Docker token", format!("dckr_pat_{}", any(27))),
        ("Doppler token", format!("dp.st.prd.{}", any(43))),
        ("Fly.io token", format!("fm2_{}", any(120))),
        ("GitLab token", format!("glrt-{}", any(20))),
        ("Google API key", format!("AIza{}", any(35))),
        ("Google OAuth secret", format!("GOCSPX-{}", any(28))),
        ("Google OAuth token", format!("ya29.{}", any(120))),
        ("Grafana token", format!("glsa_{}_{}", any(32), hex(8))),
        ("Groq key", format!("gsk_{}", any(52))),
        ("HashiCorp Terraform token", format!("{}.atlasv1.{}", any(14), any(67))),
        ("HashiCorp Vault token", format!("hvs.{}", any(90))),
        ("Hugging Face token", format!("hf_{}", any(34))),
        ("Linear key", format!("lin_api_{}", any(40))),
        ("Mailchimp key", format!("{}-us21", hex(32))),
        ("Mailgun key", format!("key-{}", hex(32))),
        ("New Relic key", format!("NRAK-{}", upper(27))),
        ("Notion token", format!("ntn_{}", any(46))),
        ("npm token", format!("npm_{}", any(36))),
        ("Perplexity key", format!("pplx-{}", any(48))),
        ("PlanetScale token", format!("pscale_tkn_{}", any(43))),
        ("Postman key", format!("PMAK-{}-{}", hex(24), hex(34))),
        ("PyPI token", format!("pypi-AgEIcHlwaS5vcmc{}", any(140))),
        ("Replicate token", format!("r8_{}", any(37))),
        ("RubyGems key", format!("rubygems_{}", hex(48))),
        ("SendGrid key", format!("SG.{}.{}", any(22), any(43))),
        ("Sentry token", format!("sntrys_{}", any(120))),
        ("Shopify token", format!("shpat_{}", hex(32))),
        ("Slack app token", format!("xapp-1-{}-{}-{}", any(11), "1".repeat(13), hex(64))),
        ("Slack webhook", format!("hooks.slack.com/services/T{}/B{}/{}", any(8), any(8), any(24))),
        ("Square token", format!("sq0atp-{}", any(22))),
        ("Stripe key", format!("rk_live_{}", any(24))),
        ("Stripe webhook secret", format!("whsec_{}", any(32))),
        ("Supabase token", format!("sbp_{}", hex(40))),
        ("Telegram bot token", format!("123456789:AA{}", any(33))),
        ("Twilio key", format!("SK{}", hex(32))),
        ("xAI key", format!("xai-{}", any(80))),
        // Those that are told by the words around them, or that were known before.
        ("GitHub token", format!("ghp_{}", any(36))),
        ("GitHub fine-grained token", format!("github_pat_{}", any(82))),
        ("GitLab personal token", format!("glpat-{}", any(20))),
        ("key of a model's API", format!("sk-ant-api03-{}", any(80))),
        ("AWS key id", format!("AKIA{}", upper(16))),
        ("Slack token", format!("xoxb-{}-{}", "1".repeat(12), any(24))),
        ("JSON web token", format!("eyJ{}.eyJ{}.{}", any(30), any(60), any(43))),
        ("bearer", format!("Bearer {}", any(40))),
        ("authorization", format!("Authorization: Basic {}", any(40))),
        ("header with a key", format!("X-Api-Key: {}", any(40))),
        ("name and value", format!("DB_PASSWORD = '{} {}'", any(9), any(9))),
        ("name and value in JSON", format!(r#"private_key_id" : "{} {}""#, hex(20), hex(20))),
        ("name and value in JSON in JSON", format!(r#"client_secret\": \"{}\""#, any(24))),
        ("ssh key", format!("ssh-ed25519 {}", any(68))),
        ("address with a password", format!("postgres://me:{}@", any(20))),
        (
            "PGP private key",
            format!(
                "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{}\n{}\n-----END PGP PRIVATE KEY BLOCK-----",
                any(64),
                any(40)
            ),
        ),
    ]
}

#[test]
fn every_class_is_found_whole_and_in_pieces_of_every_size() {
    let tokens = tokens();
    for class in CLASSES {
        assert!(tokens.iter().any(|(name, _)| *name == class.name), "no token of {}", class.name);
    }
    for (name, token) in &tokens {
        for (before, after) in
            [("", ""), ("run it with ", " and wait"), ("(", ")"), ("x=\"", "\", y"), ("é: ", "。")]
        {
            let text = format!("{before}{token}{after}");
            let shown = redact(&text);
            // What has no end of its own takes what stands against it along.
            let (all, least) =
                (format!("{before}[redacted]{after}"), format!("{before}[redacted]"));
            assert!(shown == all || (shown == least && !after.starts_with(' ')), "{name}: {shown}");
            let letters: Vec<char> = text.chars().collect();
            for size in 1..=letters.len() {
                let mut redactor = Redactor::default();
                let pieces = letters.chunks(size).map(|piece| piece.iter().collect::<String>());
                let mut told: String = pieces.map(|piece| redactor.push(&piece)).collect();
                told += &redactor.finish();
                assert_eq!(told, shown, "{name} in pieces of {size}");
            }
        }
    }
}

#[test]
fn a_value_whose_quotes_do_not_close_is_hidden_to_the_end() {
    for text in ["password='hunter 2", "password: \"hunter 2", r#"{\"password\":\"hunter 2"#] {
        let shown = redact(text);
        assert!(shown.contains("[redacted]") && !shown.contains("hunter"), "{shown}");
    }
}

#[test]
fn what_only_looks_like_a_token_stays() {
    let hash = "0a1b2c3d4e5f67890a1b2c3d4e5f67890a1b2c3d";
    for text in [
        "AIzaNotAKey is too short",
        "npm_config_registry and npm_lifecycle_event",
        "hf_hub_download(repo_id)",
        "pypi-attestations 0.0.12, pypi-simple",
        "SG.example and SG.org",
        "r8_small and r8_model",
        "cio_write(buffer) in precious code",
        "dapi/v2 and dapipeline",
        "shpat_short",
        "hvs.example",
        "rk_live_x",
        "a test: dp.st.x",
        "glsa_module glc_x",
        "12:AA34, 12345678:AAB",
        "ntn_x, sbp_0a1b, sq0-2, xai-grok-2",
        "the signal sig=SIGTERM was sent",
        "AccountKey= is empty",
        "SKU0a1b2c3d and SKILL",
        "key-value pairs, key-0a1b2c3d",
        "eu-us1 and us-east-1",
        "https://hooks.slack.com/ is where webhooks live",
        "https://discord.com/api/webhooks/ takes POST",
        "https://example.org/a@b and user@example.org",
        "foo.barbaz.qux",
        "console.toFixed.apply",
        "an age-secret-key is long",
        hash,
        "commit 0a1b2c3d4e5f67890a1b2c3d4e5f6789",
        "-----BEGIN PGP MESSAGE-----\nhi\n-----END PGP MESSAGE-----",
        "\"secrets\" are kept; 'password' is a word",
    ] {
        assert_eq!(redact(text), text);
        let mut redactor = Redactor::default();
        let mut told: String =
            text.chars().map(|letter| redactor.push(&letter.to_string())).collect();
        told += &redactor.finish();
        assert_eq!(told, text);
    }
}

#[test]
fn what_is_a_credential_never_passes_for_a_text_without_marks() {
    let words = [
        "password=hunter2",
        "PASSWD: x",
        "Secret=1",
        "apikey=1",
        "api_key: 2",
        "private_key=3",
        "access_token=4",
        "auth_token=5",
        "Authorization: Basic eDp5",
        "Bearer abc",
        "x-api-key 1",
        "https://a:b@c",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQ",
        "-----BEGIN RSA PRIVATE KEY-----",
        "ghp_0123456789abcdef",
        "github_pat_0123456789abcdef",
        "glpat-0123456789abcdef",
        "sk-abcdef",
        "AKIAABCDEFGHIJKLMNOP",
        "ASIAABCDEFGHIJKLMNOP",
        "xoxb-0123456789",
        "eyJhbGciOiJ.eyJhbGciOiJ.x",
        "pa\u{17f}\u{17f}word=hunter2",
        "\u{212a}",
    ];
    for word in words {
        for text in [word.to_owned(), format!("あ{word}"), format!("see {word} there")] {
            assert!(marks::any(&text), "{text}");
        }
    }
    for plain in
        ["", "no", "The tide tables are up to date. High water is at nine.", "満潮は午前九時で"]
    {
        assert!(!marks::any(plain), "{plain}");
    }
}
