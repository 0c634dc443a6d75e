//! `agui protobuf`: each line asks for one event to be encoded or decoded, and each is answered by one line.
//!
//! | line | answer |
//! |---|---|
//! | `{"encode": EVENT}` | `{"encoded": "HEX"}` |
//! | `{"decode": "HEX"}` | `{"decoded": EVENT}`, null for an event of a later version |
//! | `{"accept": "HEADER"}` | `{"media_type": "…"}` |
//! | anything that is refused | `{"error": "WHY"}` |

use std::io::BufRead;

use anyhow::{Context, bail};
use banister_events::agui::encoding::negotiate;
use banister_events::agui::protobuf::{decode, encode};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Task {
    Encode(Value),
    Decode(String),
    Accept(String),
}

pub(super) fn run() -> anyhow::Result<()> {
    for (place, line) in std::io::stdin().lock().lines().enumerate() {
        let answer = answer(&line?).with_context(|| format!("line {}", place + 1))?;
        crate::say(&answer.to_string());
    }
    Ok(())
}

fn answer(line: &str) -> anyhow::Result<Value> {
    Ok(match serde_json::from_str(line)? {
        Task::Encode(event) => match encode(&event) {
            Ok(bytes) => json!({"encoded": to_hex(&bytes)}),
            Err(error) => json!({"error": error.to_string()}),
        },
        Task::Decode(hex) => match decode(&from_hex(&hex)?) {
            Ok(event) => json!({"decoded": event}),
            Err(error) => json!({"error": error.to_string()}),
        },
        Task::Accept(header) => json!({"media_type": negotiate(Some(&header)).media_type()}),
    })
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

fn from_hex(hex: &str) -> anyhow::Result<Vec<u8>> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        bail!("an odd number of digits");
    }
    pairs.iter().map(|pair| Ok(u8::from_str_radix(str::from_utf8(pair)?, 16)?)).collect()
}
