//! `banister demo`: a gateway in a throw-away directory, and a scripted coding agent that asks one thing.
//!
//! Nothing here is pretended: the agent starts the real hook, with real payloads, for every step it takes.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;
use banister_gateway::random;
use clap::Args;
use serde_json::{Value, json};

use crate::config::Config;
use crate::data_dir::quoted;
use crate::failure::GOOD;
use crate::print;
use crate::serve::{LISTEN, Named, Up, interrupted, logging, runtime, settings, up};

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:7717, or a free port if that is taken]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The speed of the scripted agent, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pace: u32,
    /// Open the routes that AAEP's conformance suite needs, without a key, and play a scripted agent
    #[arg(long)]
    aaep_suite: bool,
}

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<u8> {
    let dir = Throwaway::new()?;
    logging("warn");
    runtime()?.block_on(async {
        let socket = dir.0.join("banister.sock");
        let usual: SocketAddr = LISTEN.parse().context("the default address")?;
        let settings = settings(dir.0.clone(), &Named::default(), &Config::default())?;
        let free = tokio::net::TcpListener::bind(usual).await.is_ok();
        let listen = match args.listen {
            Some(address) => address,
            None if free => usual,
            None => SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        let up = up(settings, listen, &socket).await?;
        if args.aaep_suite {
            up.gateway.open_to_suite();
            introduce_suite(&up);
        } else {
            introduce(&up, &dir.0)?;
            let agent = Agent { hook: up.hook.clone(), pace: args.pace };
            std::thread::spawn(move || agent.work());
        }
        interrupted().await?;
        print::tell("Stopping; the demo's directory is removed.");
        up.serving.stop().await;
        Ok(GOOD)
    })
}

fn introduce(up: &Up, dir: &Path) -> anyhow::Result<()> {
    let banister = shown(&std::env::current_exe()?);
    let data = quoted(dir);
    let socket = quoted(&up.serving.socket);
    print::say(&format!(
        "Banister runs at http://{}, in a temporary directory that is removed when you press Ctrl-C.\n\
         A scripted coding agent has begun to work. In half a minute it will ask you something. Try:\n\
         \n\
         1. Open the page and answer there:  {}\n\
         2. List the open asks:              {banister} inbox --data {data}\n\
         3. Answer it:                       {banister} answer ASK accept --data {data}\n\
         4. Follow the AAEP stream:          curl -sN --unix-socket {socket} -H \"Authorization: Bearer $(cat {data}/keys/person.key)\" http://banister/aaep/v1/events\n\
         5. Read and verify the journal:     {banister} log show --data {data} && {banister} log verify --data {data}\n",
        up.serving.address,
        up.gateway.login_link()?,
    ));
    Ok(())
}

fn introduce_suite(up: &Up) {
    let address = up.serving.address;
    print::tell(
        "WARNING: in this mode whoever can reach this port on this machine listens and answers WITHOUT A KEY.\n\
         WARNING: it is for AAEP's conformance suite only. Never connect an agent to it.",
    );
    print::say(&format!(
        "Banister waits for aaep-conformance at http://{address}/aaep/v1, until you press Ctrl-C. Try:\n\
         \n\
         aaep-conformance producer --level 3 --timeout 120 --endpoint http://{address}/aaep/v1\n\
         aaep-conformance producer --level 3 --timeout 120 --endpoint ws://{address}/aaep/v1/ws\n",
    ));
}

/// The path as a person in this directory would type it.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let relative = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    quoted(&relative.unwrap_or_else(|| path.to_owned()))
}

/// A directory that is removed with everything in it.
struct Throwaway(PathBuf);

impl Throwaway {
    fn new() -> anyhow::Result<Self> {
        let dir = std::env::temp_dir().join(format!("banister-demo-{}", random::token::<4>()?));
        banister_gateway::keys::private_dir(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for Throwaway {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            print::tell(&format!("{} could not be removed: {error}", self.0.display()));
        }
    }
}

/// The scripted agent.
struct Agent {
    hook: PathBuf,
    pace: u32,
}

impl Agent {
    /// Works through its script: reads, tests, tries something it must not, asks for something a person decides.
    fn work(&self) {
        self.tell("SessionStart", &json!({ "source": "startup", "model": "scripted" }));
        self.pause(1);
        let prompt = "Fix the retry loop so that it respects the deadline, then push.";
        print::say(&format!("person: {prompt}"));
        self.tell("UserPromptSubmit", &json!({ "prompt": prompt }));
        self.pause(4);
        self.tool("Read", &json!({ "file_path": "/home/dev/orbit/src/retry.rs" }), "fn retry() {}");
        self.pause(5);
        self.tool(
            "Bash",
            &json!({ "command": "cargo test -p orbit-core", "description": "Run the tests" }),
            "test result: ok. 42 passed",
        );
        self.pause(5);
        self.tool(
            "Bash",
            &json!({ "command": "rm -rf ~ /tmp/orbit-cache", "description": "Clean the cache" }),
            "",
        );
        self.pause(5);
        let pushed = self.tool(
            "Bash",
            &json!({
                "command": "git push --force origin main", "description": "Publish the fix",
            }),
            "To github.com:dev/orbit.git + 3f0c6c1...8d0f2f8 main -> main (forced update)",
        );
        self.pause(2);
        let last = if pushed {
            "The retry loop respects the deadline now, and the fix is on main."
        } else {
            "The retry loop respects the deadline now. I did not push."
        };
        print::say(&format!("agent: {last}"));
        self.tell("Stop", &json!({ "last_assistant_message": last, "stop_hook_active": false }));
        print::say("The agent is done. The gateway goes on until you press Ctrl-C.");
    }

    /// Asks the hook before it runs a tool, and runs it only if it may.
    fn tool(&self, name: &str, input: &Value, output: &str) -> bool {
        let subject = ["command", "file_path"].iter().find_map(|key| input.get(key));
        let subject = subject.and_then(Value::as_str).unwrap_or_default();
        print::say(&format!("agent: wants to run {name}: {subject}"));
        let id = format!("toolu_{}", random::token::<6>().unwrap_or_default());
        let call = json!({ "tool_name": name, "tool_input": input, "tool_use_id": id });
        let (exit, answer) = self.hook("PreToolUse", &call);
        let verdict = serde_json::from_str::<Value>(&answer).unwrap_or_default();
        let said = |key: &str| {
            let pointer = format!("/hookSpecificOutput/{key}");
            verdict.pointer(&pointer).and_then(Value::as_str).unwrap_or_default()
        };
        let allowed = exit == Some(0) && said("permissionDecision") == "allow";
        let word = if allowed { "allowed" } else { "refused" };
        print::say(&format!("banister: {word}. {}", said("permissionDecisionReason")));
        if allowed {
            self.pause(2);
            let mut done = call;
            if let Some(done) = done.as_object_mut() {
                done.insert("tool_response".to_owned(), json!({ "stdout": output }));
                done.insert("duration_ms".to_owned(), json!(2_000));
            }
            self.tell("PostToolUse", &done);
        }
        allowed
    }

    fn tell(&self, event: &str, fields: &Value) {
        let (exit, _) = self.hook(event, fields);
        if exit != Some(0) {
            print::tell(&format!("The hook for {event} ended with {exit:?}."));
        }
    }

    /// Starts the hook as a coding agent does: the payload on stdin, the answer from stdout.
    fn hook(&self, event: &str, fields: &Value) -> (Option<i32>, String) {
        let mut payload = json!({
            "session_id": "demo", "prompt_id": "demo-1", "cwd": "/home/dev/orbit",
            "permission_mode": "default", "hook_event_name": event,
        });
        if let (Some(payload), Some(fields)) = (payload.as_object_mut(), fields.as_object()) {
            payload.extend(fields.clone());
        }
        let ran = Command::new(&self.hook)
            .args(["claude-code", event])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .and_then(|mut child| {
                if let Some(mut stdin) = child.stdin.take() {
                    stdin.write_all(payload.to_string().as_bytes())?;
                }
                child.wait_with_output()
            });
        match ran {
            Ok(output) => {
                (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Err(error) => {
                print::tell(&format!("{}: {error}", self.hook.display()));
                (None, String::new())
            }
        }
    }

    fn pause(&self, seconds: u64) {
        sleep(Duration::from_millis(seconds * 100_000 / u64::from(self.pace.max(1))));
    }
}
