//! The plain pages: links and forms, rendered on the server. They work without scripts, in a text browser, by keyboard
//! and by screen reader; nothing on them moves, and nothing reloads by itself.
//!
//! In every form "Reject" comes first: whoever presses Enter in a text field must not have accepted anything.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::Form;
use axum::body::Body;
use axum::extract::{FromRequest, Path, Query, Request, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use banister_events::activity::{AskKind, ResponseKind, Risk};
use banister_events::event::time_text;
use banister_events::locale::Locale;
use banister_events::{aaep, text};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, SET_COOKIE};
use http::{HeaderMap, Method, StatusCode};
use minijinja::{AutoEscape, Environment, context};
use serde::Deserialize;
use serde_json::Value;

use super::body::whole;
use super::streams::accepted_language;
use super::{Problem, SESSION_COOKIE, Shared, api, cookie, csrf_fits};
use crate::desk::{AnswerRequest, ExtendRequest, Opened, PersonAnswer, Refused};
use crate::facts::Handoff;
use crate::keys::{Guest, Scope};
use crate::project::Projection;
use crate::reads::blocking;

const LANGUAGE_COOKIE: &str = "banister_lang";
const POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// How many sessions the first page lists.
const MOST_SESSIONS: usize = 50;
/// How many lines a session's page shows, the newest ones.
const MOST_LINES: usize = 1_000;

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    let files = [
        ("base.html", include_str!("../../ui/templates/base.html")),
        ("inbox.html", include_str!("../../ui/templates/inbox.html")),
        ("session.html", include_str!("../../ui/templates/session.html")),
        ("message.html", include_str!("../../ui/templates/message.html")),
    ];
    for (name, source) in files {
        if let Err(error) = templates.add_template(name, source) {
            tracing::error!(%error, name, "A template does not load.");
        }
    }
    templates
});

#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    lang: Option<String>,
    notice: Option<String>,
    code: Option<String>,
}

pub(super) async fn inbox(
    State(shared): State<Shared>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Response {
    let locale = language(&asked, &headers);
    let guest = match admit(&shared, &headers, Scope::Watch, locale) {
        Ok(guest) => guest,
        Err(page) => return *page,
    };
    let asks: Vec<_> =
        shared.gateway.desk.inbox().iter().map(|opened| card(opened, locale)).collect();
    let journal = shared.gateway.journal.clone();
    let rows = match blocking(move || journal.sessions()).await {
        Ok(rows) => rows,
        Err(error) => return Problem::internal(&error).into_response(),
    };
    let sessions: Vec<_> = rows
        .iter()
        .take(MOST_SESSIONS)
        .map(|row| {
            let count = row.records.to_string();
            context! {
                id => row.session.as_str(), agent => agent_name(&shared, &row.agent),
                short => text::shorten(&row.session, 12),
                last => time_text(row.last), shown => clock_text(row.last),
                records => locale.say("page.records", &[("count", &count)]),
            }
        })
        .collect();
    let count = match asks.len() {
        0 => locale.say("page.waiting_none", &[]),
        1 => locale.say("page.waiting_one", &[]),
        many => locale.say("page.waiting_many", &[("count", &many.to_string())]),
    };
    let notice = asked.notice.as_deref().and_then(|notice| match notice {
        "accepted" => Some(locale.say("page.accepted_notice", &[])),
        "rejected" => Some(locale.say("page.rejected_notice", &[])),
        "answered" => Some(locale.say("page.answered_notice", &[])),
        "extended" => Some(locale.say("page.extended_notice", &[])),
        _ => None,
    });
    let values = context! { asks, sessions, count, notice, csrf => guest.csrf };
    page("inbox.html", locale, &asked, StatusCode::OK, values)
}

/// One open ask, as the page shows it.
fn card(opened: &Opened, locale: Locale) -> minijinja::Value {
    let ask = &opened.ask;
    let agent = opened.context.agent_title();
    let mut rows = Vec::new();
    // Rules are written in English; what an agent or a file system says is in whatever language it is.
    let mut row = |key: &str, value: String, lang: Option<&str>| {
        rows.push(context! { name => locale.say(key, &[]), value, lang });
    };
    if let Some(gate) = &ask.gate {
        row("page.why", format!("{} ({})", gate.reason, gate.rule), Some("en"));
        if let Some(safer) = &gate.safer {
            row("page.safer", safer.clone(), Some("en"));
        }
        let risk = match gate.risk {
            Risk::Low => "page.risk_low",
            Risk::Medium => "page.risk_medium",
            Risk::High => "page.risk_high",
        };
        row("page.risk", locale.say(risk, &[]), None);
        let undo = match gate.irreversible {
            Some(true) => "page.undo_no",
            Some(false) => "page.undo_yes",
            None => "page.undo_unknown",
        };
        row("page.undo", locale.say(undo, &[]), None);
    }
    let words = ask.action.as_ref().and_then(|action| action.rationale.as_deref());
    if let Some(words) = words.or(ask.words.as_deref()) {
        row("page.agent_words", text::visible(words).into_owned(), None);
    }
    if let AskKind::Clarification { context: Some(context), .. } = &ask.kind {
        row("page.context", text::visible(context).into_owned(), None);
    }
    if let Some(Handoff { target, uri, .. }) = &opened.handoff {
        let told = |text: &Option<String>| text.as_deref().map(text::one_line);
        for (key, value) in [("page.handoff_to", told(target)), ("page.handoff_where", told(uri))] {
            if let Some(value) = value {
                row(key, value, None);
            }
        }
    }
    if let Some(cwd) = &opened.context.cwd {
        row("page.folder", text::visible(cwd).into_owned(), None);
    }
    let question = matches!(ask.kind, AskKind::Clarification { .. });
    if opened.handoff.is_none() {
        let note = match opened.default_word() {
            _ if question => "page.until_note_question",
            "accept" => "page.until_note_accept",
            _ => "page.until_note",
        };
        let until = ask.deadline.map(clock_text).unwrap_or_default();
        row("page.until", format!("{until} · {}", locale.say(note, &[])), None);
        if let Some(limit) = opened.limit {
            let limit = clock_text(limit);
            let spent = locale.say("page.limit_note", &[]);
            let shown = if opened.is_extendable() { limit } else { format!("{limit} · {spent}") };
            row("page.limit", shown, None);
        }
    }
    let (title, subject) = match (&ask.kind, &ask.action) {
        _ if opened.handoff.is_some() => {
            let reason = opened.handoff.as_ref().map(|handoff| handoff.reason.clone());
            (locale.say("page.hands_over", &[("agent", agent)]), reason.unwrap_or_default())
        }
        (AskKind::Confirmation, Some(action)) => (
            locale.say("page.wants_to_run", &[("agent", agent), ("tool", &action.title())]),
            action.subject(),
        ),
        (AskKind::Clarification { question, .. } | AskKind::Plan { text: question }, _) => {
            (locale.say("page.asks", &[("agent", agent)]), question.clone())
        }
        (AskKind::Confirmation, None) => {
            (locale.say("page.asks", &[("agent", agent)]), String::new())
        }
    };
    let opaque = ask.gate.as_ref().and_then(|gate| gate.opaque.as_ref());
    let disconnected = !opened.waiting && opened.sender.is_none();
    context! {
        id => ask.id.as_str(), title => text::one_line(&title), subject => text::visible(&subject),
        opaque => opaque.map(|reason| locale.say("page.not_inspectable", &[("reason", reason)])),
        digest => ask.digest.as_str(), rows,
        disconnected => disconnected.then(|| locale.say("page.disconnected", &[])),
        extendable => opened.is_extendable(),
        handoff => opened.handoff.is_some(),
        fields => fields(&ask.kind),
    }
}

/// What an answer to a question can be given in; none where yes or no is asked for.
fn fields(kind: &AskKind) -> Option<minijinja::Value> {
    let AskKind::Clarification { kinds, choices, default, .. } = kind else { return None };
    let takes = |kind: ResponseKind| kinds.contains(&kind);
    let choices: Vec<_> = choices
        .iter()
        .filter(|_| takes(ResponseKind::MultipleChoice))
        .map(|choice| {
            let checked = default.as_ref() == Some(&choice.value);
            context! { value => choice.value.as_str(), label => text::one_line(&choice.label), checked }
        })
        .collect();
    Some(context! {
        choices,
        yes_no => takes(ResponseKind::YesNo),
        number => takes(ResponseKind::Numeric),
        text => kinds.is_empty() || takes(ResponseKind::Freetext),
    })
}

#[derive(Debug, Deserialize)]
pub(super) struct AnswerForm {
    csrf: String,
    digest: String,
    #[serde(default)]
    decision: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    choice: String,
    #[serde(default)]
    yes_no: String,
    #[serde(default)]
    number: String,
    #[serde(default)]
    text: String,
}

impl AnswerForm {
    /// The one thing that is said.
    fn said(&self) -> Option<PersonAnswer> {
        match self.decision.as_str() {
            "accept" => return Some(PersonAnswer::Accept),
            "reject" => return Some(PersonAnswer::Reject),
            "answer" => {}
            _ => return None,
        }
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.trim().is_empty());
        let number = match given(&self.number) {
            Some(text) => Some(PersonAnswer::Number(text.trim().parse().ok()?)),
            None => None,
        };
        let yes_no = match self.yes_no.as_str() {
            "yes" => Some(PersonAnswer::Yes),
            "no" => Some(PersonAnswer::No),
            _ => None,
        };
        let text = given(&text::shorten(&self.text, api::TEXT_CHARS)).map(PersonAnswer::Text);
        // Whoever writes something has left a choice that was there before.
        number.or(text).or_else(|| given(&self.choice).map(PersonAnswer::Choice)).or(yes_no)
    }
}

pub(super) async fn answer(
    State(shared): State<Shared>,
    Path(ask): Path<String>,
    request: Request,
) -> Response {
    let locale = preferred(request.headers());
    let guest = match admit(&shared, request.headers(), Scope::Answer, locale) {
        Ok(guest) => guest,
        Err(page) => return *page,
    };
    let form: AnswerForm = match form(request).await {
        Ok(form) => form,
        Err(problem) => return problem.into_response(),
    };
    if !csrf_fits(&guest, Some(&form.csrf)) {
        return problem(locale, StatusCode::FORBIDDEN, "the anti-forgery token does not fit");
    }
    let Some(said) = form.said() else {
        return problem(locale, StatusCode::BAD_REQUEST, "there is no answer in this");
    };
    let message = text::shorten(&form.message, api::MESSAGE_CHARS).into_owned();
    let notice = match &said {
        PersonAnswer::Accept => "accepted",
        PersonAnswer::Reject => "rejected",
        _ => "answered",
    };
    let (message, digest) = (Some(message), Some(form.digest));
    let given = AnswerRequest { answer: said, message, door: "page", key: guest.key, digest };
    match shared.gateway.desk.answer(&ask, &given).await {
        Ok(_) => Redirect::to(&format!("/?notice={notice}")).into_response(),
        Err(refused) => refusal(locale, &refused),
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ExtendForm {
    csrf: String,
    digest: String,
}

pub(super) async fn extend(
    State(shared): State<Shared>,
    Path(ask): Path<String>,
    request: Request,
) -> Response {
    let locale = preferred(request.headers());
    let guest = match admit(&shared, request.headers(), Scope::Answer, locale) {
        Ok(guest) => guest,
        Err(page) => return *page,
    };
    let form: ExtendForm = match form(request).await {
        Ok(form) => form,
        Err(problem) => return problem.into_response(),
    };
    if !csrf_fits(&guest, Some(&form.csrf)) {
        return problem(locale, StatusCode::FORBIDDEN, "the anti-forgery token does not fit");
    }
    let more = ExtendRequest { by: None, door: "page", key: guest.key, digest: Some(form.digest) };
    match shared.gateway.desk.extend(&ask, &more).await {
        Ok(_) => Redirect::to("/?notice=extended").into_response(),
        Err(refused) => refusal(locale, &refused),
    }
}

/// The page for what did not count.
fn refusal(locale: Locale, refused: &Refused) -> Response {
    let reason = refused.to_string();
    match refused {
        Refused::Wrong(_) | Refused::Limit(_) => {
            problem(locale, StatusCode::UNPROCESSABLE_ENTITY, &reason)
        }
        _ => {
            let line = locale.say("page.late_notice", &[("reason", &reason)]);
            problem(locale, StatusCode::CONFLICT, &line)
        }
    }
}

pub(super) async fn session(
    State(shared): State<Shared>,
    Path(session): Path<String>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Response {
    let locale = language(&asked, &headers);
    if let Err(page) = admit(&shared, &headers, Scope::Watch, locale) {
        return *page;
    }
    match timeline(&shared, &session, locale).await {
        Ok((agent, lines)) if !agent.is_empty() => {
            let here = format!("/sessions/{session}");
            let values = context! { agent, session, lines, here };
            page("session.html", locale, &asked, StatusCode::OK, values)
        }
        Ok(_) => problem(locale, StatusCode::NOT_FOUND, "there is no such session"),
        Err(error) => Problem::internal(&error).into_response(),
    }
}

/// What a screen reader would have been told, line by line.
async fn timeline(
    shared: &Shared,
    session: &str,
    locale: Locale,
) -> Result<(String, Vec<minijinja::Value>), crate::Error> {
    let mut projection = Projection::new(Arc::clone(&shared.gateway.agents));
    let mut writer = aaep::write::Writer::new(locale.tag);
    let mut lines = std::collections::VecDeque::new();
    let mut agent = String::new();
    let mut seq = 0;
    loop {
        let batch = shared.gateway.session_after(session, seq).await?;
        let Some(newest) = batch.last() else { break };
        seq = newest.seq;
        for record in &batch {
            agent = agent_name(shared, &record.source.agent);
            let activities = projection.next(record);
            for event in activities.iter().flat_map(|activity| writer.write(activity)) {
                let field = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
                let told =
                    field("type") != "aaep:agent.state.changed" || field("urgency") == "normal";
                let line = field("summary_normal");
                let said = field("chunk");
                if told && !(line.is_empty() && said.is_empty()) {
                    lines.push_back(context! {
                        time => time_text(record.time), shown => clock_text(record.time),
                        text => text::visible(line), said => text::prose(said),
                    });
                }
                if lines.len() > MOST_LINES {
                    lines.pop_front();
                }
            }
        }
    }
    Ok((agent, lines.into()))
}

pub(super) async fn login(
    State(shared): State<Shared>,
    Query(asked): Query<Asked>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let locale = language(&asked, &headers);
    // A look at the head of a link must not spend it.
    if method != Method::GET {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let cookie = match shared.gateway.keys.log_in(asked.code.as_deref().unwrap_or_default()) {
        Ok(cookie) => cookie,
        Err(error) => return Problem::internal(&error).into_response(),
    };
    if let Some(cookie) = cookie {
        let cookie = format!("{SESSION_COOKIE}={cookie}; HttpOnly; SameSite=Strict; Path=/");
        ([(SET_COOKIE, cookie)], Redirect::to("/")).into_response()
    } else {
        let message = locale.say("page.sign_in_used", &[]);
        sign_in(locale, &message)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct LogoutForm {
    csrf: String,
}

pub(super) async fn logout(State(shared): State<Shared>, request: Request) -> Response {
    let held = cookie(request.headers(), SESSION_COOKIE).map(str::to_owned);
    let (Some(guest), Some(value)) = (shared.guest(request.headers()), held) else {
        return Redirect::to("/").into_response();
    };
    let form: LogoutForm = match form(request).await {
        Ok(form) => form,
        Err(problem) => return problem.into_response(),
    };
    if !csrf_fits(&guest, Some(&form.csrf)) {
        return Problem::new(StatusCode::FORBIDDEN, "csrf", "the anti-forgery token is missing")
            .into_response();
    }
    shared.gateway.keys.log_out(&value);
    let cookie = format!("{SESSION_COOKIE}=; Max-Age=0; HttpOnly; SameSite=Strict; Path=/");
    ([(SET_COOKIE, cookie)], Redirect::to("/")).into_response()
}

/// A form, read only once it is known who sends it.
async fn form<T: serde::de::DeserializeOwned>(request: Request) -> Result<T, Problem> {
    let bytes = whole(request.into_body(), 64 * 1024).await?;
    let request = Request::builder()
        .method(Method::POST)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(bytes))
        .map_err(|error| Problem::internal(&error))?;
    match Form::<T>::from_request(request, &()).await {
        Ok(Form(form)) => Ok(form),
        Err(error) => Err(Problem::new(StatusCode::BAD_REQUEST, "form", error.to_string())),
    }
}

pub(super) async fn style() -> Response {
    let headers = [(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "no-cache")];
    (headers, include_str!("../../ui/app.css")).into_response()
}

/// The guest of a page, or the page that tells how to become one.
fn admit(
    shared: &Shared,
    headers: &HeaderMap,
    scope: Scope,
    locale: Locale,
) -> Result<Guest, Box<Response>> {
    match shared.guest(headers) {
        Some(guest) if guest.may(scope) => Ok(guest),
        Some(_) => {
            Err(Box::new(problem(locale, StatusCode::FORBIDDEN, "this key may not do that")))
        }
        None => Err(Box::new(sign_in(locale, &locale.say("page.sign_in_how", &[])))),
    }
}

fn sign_in(locale: Locale, message: &str) -> Response {
    let heading = locale.say("page.sign_in", &[]);
    let values = context! { heading, message, command => "banister token login" };
    page("message.html", locale, &Asked::default(), StatusCode::UNAUTHORIZED, values)
}

fn problem(locale: Locale, status: StatusCode, message: &str) -> Response {
    let heading = locale.say("page.problem", &[]);
    let values = context! { heading, message, back => true };
    page("message.html", locale, &Asked::default(), status, values)
}

fn page(
    name: &str,
    locale: Locale,
    asked: &Asked,
    status: StatusCode,
    values: minijinja::Value,
) -> Response {
    let t: &BTreeMap<String, String> = locale.sentences();
    let languages: Vec<_> =
        [("en", "English"), ("es", "Español"), ("ar", "العربية"), ("ja", "日本語")]
            .into_iter()
            .map(|(tag, name)| context! { tag, name })
            .collect();
    let common = context! { t, languages, lang => locale.tag, dir => locale.direction };
    let rendered = TEMPLATES
        .get_template(name)
        .and_then(|template| template.render(context! { ..common, ..values }));
    let html = match rendered {
        Ok(html) => html,
        Err(error) => return Problem::internal(&error).into_response(),
    };
    let headers = [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        // Without a referrer a browser calls our own forms' origin "null", which the door refuses.
        ("referrer-policy", "same-origin"),
        ("cache-control", "no-store"),
    ];
    let mut response = (status, headers, Html(html)).into_response();
    if asked.lang.is_some() {
        let cookie = format!("{LANGUAGE_COOKIE}={}; SameSite=Strict; Path=/", locale.tag);
        if let Ok(value) = cookie.parse() {
            response.headers_mut().append(SET_COOKIE, value);
        }
    }
    response
}

fn language(asked: &Asked, headers: &HeaderMap) -> Locale {
    match &asked.lang {
        Some(tag) => Locale::choose([tag.as_str()]),
        None => preferred(headers),
    }
}

fn preferred(headers: &HeaderMap) -> Locale {
    match cookie(headers, LANGUAGE_COOKIE) {
        Some(tag) => Locale::choose([tag]),
        None => accepted_language(headers),
    }
}

fn agent_name(shared: &Shared, agent: &str) -> String {
    let known = shared.gateway.agents.find(agent);
    known.map_or_else(|| text::one_line(agent), |mapping| mapping.display_name.clone())
}

/// Hours, minutes and seconds in the person's own time zone, with the day where it matters to a reader of the record.
fn clock_text(time: jiff::Timestamp) -> String {
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
