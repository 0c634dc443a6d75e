//! Tokens that can be told by their shape: what they begin with, and what follows. Each is one word, so that what comes in
//! pieces needs no more than its last word held back.
//!
//! A class has two patterns. The first is a short trace that every such token has in it; a text without any trace needs
//! no closer look. The second is the whole token. It begins at a word boundary and takes all that may belong to the token:
//! the end of a longer one must not be left.

/// One class of tokens.
pub(super) struct Class {
    /// What it is, for those who read this.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests go by it, and so do readers"))]
    pub(super) name: &'static str,
    /// What every such token has in it.
    pub(super) trace: &'static str,
    /// The token.
    pub(super) whole: &'static str,
}

const fn class(name: &'static str, trace: &'static str, whole: &'static str) -> Class {
    Class { name, trace, whole }
}

/// Upper and lower case count.
pub(super) static CLASSES: &[Class] = &[
    class("age secret key", "AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    class("Airtable token", r"\.[0-9a-f]{64}", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64,}"),
    class("Atlassian token", "ATATT3", "ATATT3[A-Za-z0-9_=-]{40,}"),
    class("AWS temporary token", "FwoGZXIvYXdz", "FwoGZXIvYXdz[A-Za-z0-9+/=]{40,}"),
    class("Azure connection string", "AccountKey=", r"AccountKey=[A-Za-z0-9+/]{20,}=*"),
    class("Azure shared access key", "SharedAccessKey=", r"SharedAccessKey=[A-Za-z0-9+/]{20,}=*"),
    class("Azure shared access signature", "sig=", "sig=[A-Za-z0-9+/=%]{40,}"),
    class("crates.io token", "cio[A-Za-z0-9]{32}", "cio[A-Za-z0-9]{32,}"),
    class("Databricks token", "dapi[0-9a-f]{8}", "dapi[0-9a-f]{32,}(?:-[0-9])?"),
    class("DigitalOcean token", "_v1_", "do[opr]_v1_[0-9a-f]{40,}"),
    class(
        "Discord bot token",
        r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
        r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    ),
    class(
        "Discord webhook",
        "/api/webhooks/",
        "discord(?:app)?\\.com/api/webhooks/[0-9]{10,}/[A-Za-z0-9_-]{20,}",
    ),
    class("Docker token", "dckr_", "dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    class("Doppler token", r"dp\.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{30,}"),
    class("Fly.io token", "fm[12][ar]?_|fo1_", "(?:fm[12][ar]?_|fo1_)[A-Za-z0-9+/=_-]{40,}"),
    class(
        "GitLab token",
        "gl[a-z]{2,5}-",
        "gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{16,}",
    ),
    class("Google API key", "AIza", "AIza[0-9A-Za-z_-]{35,}"),
    class("Google OAuth secret", "GOCSPX-", "GOCSPX-[0-9A-Za-z_-]{20,}"),
    class("Google OAuth token", r"ya29\.", r"ya29\.[0-9A-Za-z_-]{20,}"),
    class("Grafana token", "glsa_|glc_", "(?:glsa|glc)_[A-Za-z0-9+/=_]{32,}"),
    class("Groq key", "gsk_", "gsk_[A-Za-z0-9]{40,}"),
    class("HashiCorp Terraform token", "atlasv1", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    class("HashiCorp Vault token", r"hv[sbr]\.", r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    class("Hugging Face token", "hf_", "hf_[A-Za-z0-9]{30,}"),
    class("Linear key", "lin_", "lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    class("Mailchimp key", "[0-9a-f]{8}-us[0-9]", "[0-9a-f]{32}-us[0-9]{1,2}"),
    class("Mailgun key", "key-[0-9a-f]{32}", "key-[0-9a-f]{32,}"),
    class("New Relic key", "NRAK-", "NRAK-[A-Z0-9]{27,}"),
    class("Notion token", "ntn_", "ntn_[A-Za-z0-9]{40,}"),
    class("npm token", "npm_", "npm_[A-Za-z0-9]{36,}"),
    class("Perplexity key", "pplx-", "pplx-[A-Za-z0-9]{40,}"),
    class("PlanetScale token", "pscale_", "pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}"),
    class("Postman key", "PMAK-", "PMAK-[0-9a-f]{24}-[0-9a-f]{34,}"),
    class("PyPI token", "pypi-", "pypi-AgE[A-Za-z0-9_-]{40,}"),
    class("Replicate token", "r8_", "r8_[A-Za-z0-9]{37,}"),
    class("RubyGems key", "rubygems_", "rubygems_[0-9a-f]{48,}"),
    class("SendGrid key", r"SG\.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    class("Sentry token", "sntry[su]_", "sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    class("Shopify token", "shp[a-z]{2}_", "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}"),
    class("Slack app token", "xapp-", "xapp-[0-9]-[A-Za-z0-9-]{20,}"),
    class(
        "Slack webhook",
        r"hooks\.slack\.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}",
    ),
    class("Square token", "sq0", "sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}"),
    class("Stripe key", "_(?:live|test)_", "[srp]k_(?:live|test)_[0-9A-Za-z]{16,}"),
    class("Stripe webhook secret", "whsec_", "whsec_[A-Za-z0-9+/=]{24,}"),
    class("Supabase token", "sbp_", "sbp_[0-9a-f]{40,}"),
    class("Telegram bot token", ":AA", "[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    class("Twilio key", "SK[0-9a-f]{32}", "SK[0-9a-f]{32,}"),
    class("xAI key", "xai-", "xai-[A-Za-z0-9]{40,}"),
];
