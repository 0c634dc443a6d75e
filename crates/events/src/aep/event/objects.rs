//! The objects inside events and responses, and their words.

use serde_json::{Number, Value};

use crate::check::shape::{Kind, NAME, STRING};
use crate::record::{Record, record, words};

const SIZE: Kind = Kind::Number { min: 0.0, max: f64::MAX };
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
const ICON: Kind = Kind::Record(&Icon::SHAPE);
pub(super) const TIME: Kind = Kind::Format {
    looks: "an RFC 3339 time with offset",
    fits: |text| crate::check::time::rfc3339(text).is_some(),
    pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
    format: "date-time",
};

pub(super) const fn list(item: &'static Kind) -> Kind {
    Kind::List { min: 0, max: usize::MAX, distinct: false, item }
}

record! {
    /// What a response tells the agent.
    pub lenient Control {
        /// What to do. A reader that does not know the word takes the strictest answer it has.
        must behavior: Behavior = Kind::Word(Behavior::WORDS),
        /// What the person or the agent is told.
        may message: String = STRING,
        /// What to do it with instead; goes with allow only.
        may updated_input: Value = Kind::Any,
        /// What the model should know besides.
        may additional_context: String = STRING,
    }

    /// An agent.
    pub lenient Agent {
        /// A short vendor word, such as claude or cursor.
        must slug: String = NAME,
        /// A name for people.
        may display_name: String = STRING,
        /// The agent's version.
        may version: String = STRING,
        /// One running process or window of it.
        may instance_id: String = STRING,
        /// Where it runs, such as cli or ide.
        may surface: String = STRING,
    }

    /// A session.
    #[derive(Default)]
    pub lenient Session {
        /// Its id.
        may id: String = NAME,
        /// The thread, where one process has several.
        may conversation_id: String = NAME,
        /// One request of a person and all that follows from it.
        may turn_id: String = NAME,
        /// What the agent may do without asking, in its own words.
        may permission_mode: String = STRING,
        /// The top of a tree of threads.
        may root_conversation_id: String = NAME,
        /// The thread that it came from.
        may parent: Parent = Kind::Record(&Parent::SHAPE),
    }

    /// The thread that a session came from.
    #[derive(Default)]
    pub lenient Parent {
        /// Its id.
        may conversation_id: String = NAME,
        /// How the session came from it.
        may relation: Relation = Kind::Word(Relation::WORDS),
        /// The action that began the session.
        may spawning_action_id: String = NAME,
    }

    /// A person.
    #[derive(Default)]
    pub lenient User {
        /// Their id.
        may id: String = STRING,
        /// Their name at the machine.
        may login: String = STRING,
        /// Their name for people.
        may display_name: String = STRING,
        /// Their address.
        may email: String = STRING,
    }

    /// Where an agent works.
    #[derive(Default)]
    pub lenient Workspace {
        /// The folder it is in.
        may cwd: String = STRING,
        /// The root of the project.
        may project_path: String = STRING,
        /// All roots, where there are several.
        may roots: Vec<String> = list(&STRING),
    }

    /// A model.
    #[derive(Default)]
    pub lenient Model {
        /// Its id.
        may id: String = STRING,
        /// Its name for people.
        may display_name: String = STRING,
        /// Who offers it.
        may provider: String = STRING,
        /// How hard it thinks, in its own words.
        may effort: String = STRING,
    }

    /// Something done, from its request to its end.
    pub lenient Action {
        /// What kind of action it is.
        must kind as "type": ActionType = Kind::Word(ActionType::WORDS),
        /// Joins request, answer and end.
        must id: String = NAME,
        /// How it ended.
        may status: ActionStatus = Kind::Word(ActionStatus::WORDS),
        /// Why the agent wants it, in its own words.
        may rationale: String = STRING,
        /// What it is done with.
        may input: Value = Kind::Any,
        /// What came of it.
        may output: Value = Kind::Any,
        /// What went wrong.
        may error: ActionError = Kind::Record(&ActionError::SHAPE),
    }

    /// What went wrong.
    #[derive(Default)]
    pub lenient ActionError {
        /// In one word.
        may code: String = STRING,
        /// For people.
        may message: String = STRING,
    }

    /// A tool.
    pub lenient Tool {
        /// Where it comes from.
        must kind as "type": ToolType = Kind::Word(ToolType::WORDS),
        /// Its name; for MCP without the server's.
        must name: String = NAME,
        /// Its id in a catalogue.
        may id: String = STRING,
        /// Its name for people.
        may display_name: String = STRING,
        /// What it does.
        may description: String = STRING,
        /// Its version.
        may version: String = STRING,
        /// Its picture.
        may icon: Icon = ICON,
        /// The JSON Schema of its input.
        may schema: Value = Kind::Any,
        /// Its name as the agent has it.
        may original_name: String = STRING,
    }

    /// A small picture.
    pub lenient Icon {
        /// Where it is.
        must src: String = STRING,
        /// Its media type.
        may mime_type: String = STRING,
    }

    /// A server that has tools.
    #[derive(Default)]
    pub lenient Server {
        /// Its id.
        may id: String = STRING,
        /// Its name.
        may name: String = STRING,
        /// Its name for people.
        may title: String = STRING,
        /// What it offers.
        may description: String = STRING,
        /// Its version.
        may version: String = STRING,
        /// Its picture.
        may icon: Icon = ICON,
        /// How it is talked to, such as stdio or http.
        may transport: String = STRING,
        /// What starts it.
        may command: String = STRING,
        /// Where it is.
        may url: String = STRING,
        /// Where its source is.
        may repository_url: String = STRING,
        /// Where it is described.
        may website_url: String = STRING,
    }

    /// A skill.
    pub lenient Skill {
        /// Its name.
        must name: String = NAME,
        /// Its id.
        may id: String = STRING,
        /// Where it comes from.
        may source: SkillSource = Kind::Word(SkillSource::WORDS),
        /// Its version.
        may version: String = STRING,
        /// The file it is in.
        may path: String = STRING,
        /// What it is for.
        may description: String = STRING,
    }

    /// Something said.
    pub lenient Content {
        /// What it is.
        must kind as "type": ContentType = Kind::Word(ContentType::WORDS),
        /// The words.
        must text: String = STRING,
        /// How to show it; an unknown style is plain text.
        may style: String = STRING,
        /// Whether the agent cut it.
        may truncated: bool = Kind::Bool,
        /// How long it was before.
        may original_length: u64 = COUNT,
    }

    /// Something attached.
    pub lenient Attachment {
        /// What it is.
        must kind as "type": AttachmentType = Kind::Word(AttachmentType::WORDS),
        /// Its media type.
        may mime_type: String = STRING,
        /// Its name.
        may name: String = STRING,
        /// Where it is.
        may url: String = STRING,
        /// Where a small picture of it is.
        may thumbnail_url: String = STRING,
        /// The thing itself.
        may data_uri: String = STRING,
        /// A small picture of it.
        may thumbnail_data_uri: String = STRING,
        /// In pixels.
        may width: Number = SIZE,
        /// In pixels.
        may height: Number = SIZE,
        /// How long it plays.
        may duration_ms: Number = SIZE,
        /// How large it is.
        may size_bytes: u64 = COUNT,
    }

    /// What was decided about an action.
    pub lenient Decision {
        /// The decision.
        must outcome: Outcome = Kind::Word(Outcome::WORDS),
        /// Who decided.
        may by: String = STRING,
        /// Why.
        may reason: String = STRING,
        /// What the agent should do differently.
        may feedback: String = STRING,
        /// The policy that decided.
        may policy_id: String = STRING,
        /// When.
        may time: String = TIME,
        /// How long it took.
        may response_time_ms: Number = SIZE,
    }

    /// Why something began or ended.
    #[derive(Default)]
    pub lenient Lifecycle {
        /// Why a session began.
        may source: String = STRING,
        /// Why it ended or failed.
        may reason: String = STRING,
        /// Who or what set it off.
        may trigger: String = STRING,
    }
}

words! {
    /// What a hook response may tell the agent to do.
    pub enum Behavior {
        /// Go ahead.
        Allow = "allow",
        /// Do not.
        Deny = "deny",
        /// Ask the person in the agent's own dialog.
        Ask = "ask",
        /// Wait, and go on later.
        Defer = "defer",
        /// Refuse the result or the stop, and take another turn.
        Block = "block",
        /// Go on.
        Continue = "continue",
        /// Stop the agent.
        Stop = "stop",
        /// No opinion.
        Abstain = "abstain",
    }

    /// How a session came from another.
    pub enum Relation {
        /// As its subagent.
        Subagent = "subagent",
        /// As a branch of it.
        Fork = "fork",
        /// As the same one, later.
        Resume = "resume",
        /// As what follows it.
        Continuation = "continuation",
    }

    /// What kind of action it is.
    pub enum ActionType {
        /// A tool runs.
        ToolCall = "tool_call",
        /// A skill is used.
        SkillUse = "skill_use",
        /// A subagent begins.
        SubagentSpawn = "subagent_spawn",
        /// Something else, as the protocol calls it.
        Unlisted = "other",
    }

    /// How an action ended.
    pub enum ActionStatus {
        /// It did what it should.
        Success = "success",
        /// It failed.
        Failure = "failure",
        /// It took too long.
        Timeout = "timeout",
        /// It was stopped.
        Cancelled = "cancelled",
    }

    /// Where a tool comes from.
    pub enum ToolType {
        /// The agent itself.
        Native = "native",
        /// An MCP server.
        Mcp = "mcp",
        /// A connector.
        Connector = "connector",
        /// An extension of the agent.
        Extension = "extension",
        /// Somewhere else, as the protocol calls it.
        Unlisted = "other",
        /// What the overview of the protocol calls `other`; read, never written.
        Custom = "custom",
    }

    /// Where a skill comes from.
    pub enum SkillSource {
        /// The person.
        User = "user",
        /// The project.
        Project = "project",
        /// The agent itself.
        Builtin = "builtin",
        /// A marketplace.
        Marketplace = "marketplace",
    }

    /// What something said is.
    pub enum ContentType {
        /// What a person asked for.
        Prompt = "prompt",
        /// What the model thought.
        Thought = "thought",
        /// What the model answered.
        Response = "response",
        /// What the model plans.
        Plan = "plan",
        /// What a person is told.
        Notification = "notification",
        /// What a person is asked.
        Question = "question",
        /// What a person answered.
        Answer = "answer",
    }

    /// What an attachment is.
    pub enum AttachmentType {
        /// A picture.
        Image = "image",
        /// A film.
        Video = "video",
        /// Sound.
        Audio = "audio",
        /// Any file.
        File = "file",
    }

    /// What was decided.
    pub enum Outcome {
        /// Yes.
        Approved = "approved",
        /// No.
        Denied = "denied",
        /// Neither; for the record.
        Info = "info",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn kinds_of_content_are_the_same_everywhere() {
        assert_eq!(super::ContentType::WORDS, crate::aep::types::CONTENT_KINDS);
    }
}
