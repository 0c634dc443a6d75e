//! The languages that people are spoken to in.

use std::fmt::Write;

use banister_events::locale::Locale;

pub(super) fn page() -> anyhow::Result<String> {
    let mut page = String::from(
        "# Languages\n\n\
         Every sentence a person hears or reads comes from one catalogue per language, under `crates/events/locales/`. \
         A stream takes `?lang=TAG` or `Accept-Language`, a page takes `?lang=TAG`; `es-MX` finds `es`, and what is not \
         there is said in English. Tests hold all languages to the same keys and placeholders.\n\n\
         | tag | direction | sentences |\n|---|---|---|\n",
    );
    for tag in Locale::tags() {
        let locale = Locale::choose([tag]);
        let direction = match locale.direction {
            "rtl" => "right to left",
            _ => "left to right",
        };
        writeln!(page, "| `{}` | {direction} | {} |", locale.tag, locale.sentences().len())?;
    }
    Ok(page)
}
