//! What an agent says that it can do.
//!
//! All of it is optional: what is not declared is unknown, not unsupported. Nothing may depend on it, so nothing is
//! decided here. The protocol does not say how to ask for it.

use serde_json::{Map, Value};

use super::event::declare::object;
use super::event::kinds::{COUNT, list};
use super::input::Tool;
use crate::check::shape::{Kind, STRING};

object! {
    /// What an agent can do, called `AgentCapabilities` by the protocol.
    ///
    /// ```
    /// use banister_events::agui::capabilities::{Capabilities, HumanInTheLoop};
    /// let declared = Capabilities {
    ///     human_in_the_loop: Some(HumanInTheLoop {
    ///         interrupts: Some(true),
    ///         ..HumanInTheLoop::default()
    ///     }),
    ///     ..Capabilities::default()
    /// };
    /// let sent = r#"{"humanInTheLoop":{"interrupts":true}}"#;
    /// assert_eq!(serde_json::to_string(&declared)?, sent);
    /// assert_eq!(serde_json::from_str::<Capabilities>(sent)?, declared);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub Capabilities {
        /// Who it is.
        may identity: Identity = Kind::Record(&Identity::SHAPE),
        /// How it is talked to.
        may transport: Transport = Kind::Record(&Transport::SHAPE),
        /// How it uses tools.
        may tools: Tools = Kind::Record(&Tools::SHAPE),
        /// What it answers with.
        may output: Output = Kind::Record(&Output::SHAPE),
        /// What it shares and remembers.
        may state: State = Kind::Record(&State::SHAPE),
        /// How it works with other agents.
        may multi_agent as "multiAgent": MultiAgent = Kind::Record(&MultiAgent::SHAPE),
        /// What it shows of its reasoning.
        may reasoning: Reasoning = Kind::Record(&Reasoning::SHAPE),
        /// What it takes and gives besides text.
        may multimodal: Multimodal = Kind::Record(&Multimodal::SHAPE),
        /// What it runs, and how long.
        may execution: Execution = Kind::Record(&Execution::SHAPE),
        /// What it asks people.
        may human_in_the_loop as "humanInTheLoop": HumanInTheLoop = Kind::Record(&HumanInTheLoop::SHAPE),
        /// What others add.
        may custom: Map<String, Value> = Kind::Object,
    }

    /// Who an agent is.
    pub Identity {
        /// Its name.
        may name: String = STRING,
        /// What it is built with.
        may kind as "type": String = STRING,
        /// What it is for.
        may description: String = STRING,
        /// Its version.
        may version: String = STRING,
        /// Who offers it.
        may provider: String = STRING,
        /// Where it is described.
        may documentation_url as "documentationUrl": String = STRING,
        /// What others add.
        may metadata: Map<String, Value> = Kind::Object,
    }

    /// How an agent is talked to.
    pub Transport {
        /// It sends events as they happen.
        may streaming: bool = Kind::Bool,
        /// Over a WebSocket.
        may websocket: bool = Kind::Bool,
        /// In the binary encoding, over HTTP.
        may http_binary as "httpBinary": bool = Kind::Bool,
        /// It can notify without being asked.
        may push_notifications as "pushNotifications": bool = Kind::Bool,
        /// A broken stream can be taken up again.
        may resumable: bool = Kind::Bool,
    }

    /// How an agent uses tools.
    pub Tools {
        /// It calls tools.
        may supported: bool = Kind::Bool,
        /// Several at once.
        may parallel_calls as "parallelCalls": bool = Kind::Bool,
        /// Also those that the application brings.
        may client_provided as "clientProvided": bool = Kind::Bool,
        /// The tools that it has itself.
        may items: Vec<Tool> = list(&Kind::Record(&Tool::SHAPE)),
    }

    /// What an agent answers with.
    pub Output {
        /// Answers that follow a schema.
        may structured_output as "structuredOutput": bool = Kind::Bool,
        /// The media types of its answers.
        may supported_mime_types as "supportedMimeTypes": Vec<String> = list(&STRING),
    }

    /// What an agent shares and remembers.
    pub State {
        /// It sends the whole state.
        may snapshots: bool = Kind::Bool,
        /// It sends changes to the state.
        may deltas: bool = Kind::Bool,
        /// It remembers from one conversation to the next.
        may memory: bool = Kind::Bool,
        /// It keeps the state from one run to the next.
        may persistent_state as "persistentState": bool = Kind::Bool,
    }

    /// How an agent works with other agents.
    pub MultiAgent {
        /// It does.
        may supported: bool = Kind::Bool,
        /// It gives them tasks.
        may delegation: bool = Kind::Bool,
        /// It hands over to them.
        may handoffs: bool = Kind::Bool,
        /// Those that it has itself.
        may subagents: Vec<Subagent> = list(&Kind::Record(&Subagent::SHAPE)),
    }

    /// An agent that another has.
    pub Subagent {
        /// Its name.
        must name: String = STRING,
        /// What it is for.
        may description: String = STRING,
    }

    /// What an agent shows of its reasoning.
    pub Reasoning {
        /// Something.
        may supported: bool = Kind::Bool,
        /// As it happens.
        may streaming: bool = Kind::Bool,
        /// As something opaque to store and return.
        may encrypted: bool = Kind::Bool,
    }

    /// What an agent takes and gives besides text.
    pub Multimodal {
        /// What it takes.
        may input: MediaInput = Kind::Record(&MediaInput::SHAPE),
        /// What it gives.
        may output: MediaOutput = Kind::Record(&MediaOutput::SHAPE),
    }

    /// What an agent takes besides text.
    pub MediaInput {
        /// Pictures.
        may image: bool = Kind::Bool,
        /// Sound.
        may audio: bool = Kind::Bool,
        /// Films.
        may video: bool = Kind::Bool,
        /// PDF documents.
        may pdf: bool = Kind::Bool,
        /// Any file.
        may file: bool = Kind::Bool,
    }

    /// What an agent gives besides text.
    pub MediaOutput {
        /// Pictures.
        may image: bool = Kind::Bool,
        /// Sound.
        may audio: bool = Kind::Bool,
    }

    /// What an agent runs, and how long.
    pub Execution {
        /// It runs code.
        may code_execution as "codeExecution": bool = Kind::Bool,
        /// Where it can do no harm.
        may sandboxed: bool = Kind::Bool,
        /// How many rounds a run has at most.
        may max_iterations as "maxIterations": u64 = COUNT,
        /// How long a run takes at most, in milliseconds.
        may max_execution_time as "maxExecutionTime": u64 = COUNT,
    }

    /// What an agent asks people.
    pub HumanInTheLoop {
        /// Something.
        may supported: bool = Kind::Bool,
        /// Whether it may do something.
        may approvals: bool = Kind::Bool,
        /// Whether they want to step in.
        may interventions: bool = Kind::Bool,
        /// What they think of its work.
        may feedback: bool = Kind::Bool,
        /// By ending a run with interrupts.
        may interrupts: bool = Kind::Bool,
        /// Whether it may do something, and they can change what.
        may approve_with_edits as "approveWithEdits": bool = Kind::Bool,
    }
}

#[cfg(test)]
#[path = "capabilities_tests.rs"]
mod tests;
