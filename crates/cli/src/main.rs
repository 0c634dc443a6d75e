//! `banister`: one file per command.
//!
//! `stdout` is data, `stderr` is for people. Exit codes are API: 0 good, 1 errors found or refused, 2 usage, 3 the tool
//! itself failed.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod aaep_stdio;
mod agents;
mod answer;
mod check;
mod config;
mod data_dir;
mod demo;
mod env;
mod extend;
mod failure;
mod grants;
mod hook;
mod inbox;
mod log;
mod policy;
mod print;
mod repair;
mod replay;
mod rules;
mod schema;
mod serve;
mod token;
mod translate;

/// One rail for every agent: see, hear and approve what AI agents do on your behalf
#[derive(Debug, Parser)]
#[command(name = "banister", version, arg_required_else_help = true, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a gateway in a temporary directory, with a scripted agent that asks you something
    Demo(demo::DemoArgs),
    /// Start the gateway
    Serve(serve::ServeArgs),
    /// List the asks that wait for an answer
    Inbox(inbox::InboxArgs),
    /// Answer an ask
    Answer(answer::AnswerArgs),
    /// List and revoke grants
    Grants(grants::GrantsArgs),
    /// Extend the time to answer an ask
    Extend(extend::ExtendArgs),
    /// Check a recorded or live stream against its protocol
    Check(check::CheckArgs),
    /// Repair a broken AG-UI recording
    Repair(repair::RepairArgs),
    /// Translate a stream, or the hook payloads of a coding agent, into another protocol
    Translate(translate::TranslateArgs),
    /// Play a recording into a running gateway
    Replay(replay::ReplayArgs),
    /// List the rules that streams are checked against
    Rules(rules::RulesArgs),
    /// Print the JSON Schemas of a protocol
    Schema(schema::SchemaArgs),
    /// Explain verdicts, check and test rules, and replay rules on the journal
    Policy(policy::PolicyArgs),
    /// List the supported coding agents, and test mapping files
    Agents(agents::AgentsArgs),
    /// Read and verify the journal
    Log(log::LogArgs),
    /// Issue, list and revoke keys, and make login links for the browser
    Token(token::TokenArgs),
    /// Speak AAEP over standard input and output (JSON-RPC), for subscribers that start their producer
    AaepStdio(aaep_stdio::AaepStdioArgs),
    /// Act as an agent's hook: read a native payload on stdin, print the native answer
    Hook(hook::HookArgs),
}

fn main() -> ExitCode {
    // Under the hook's name this is the hook: a machine without the small binary still has a working one.
    let mut words = std::env::args_os();
    let name = words.next().map(std::path::PathBuf::from);
    if name.as_ref().and_then(|name| name.file_stem()).is_some_and(|name| name == "banister-hook") {
        return banister_hook::main(words);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return print::usage(&error),
    };
    let result = match arguments.command {
        Command::Demo(args) => demo::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Inbox(args) => inbox::run(&args),
        Command::Answer(args) => answer::run(&args),
        Command::Grants(args) => grants::run(&args),
        Command::Extend(args) => extend::run(&args),
        Command::Check(args) => print::with(|out, err| check::run(&args, out, err)),
        Command::Repair(args) => print::with(|out, err| repair::run(&args, out, err)),
        Command::Translate(args) => print::with(|out, err| translate::run(&args, out, err)),
        Command::Replay(args) => print::with(|out, err| replay::run(&args, out, err)),
        Command::Rules(args) => print::with(|out, err| rules::run(&args, out, err)),
        Command::Policy(args) => print::with(|out, err| policy::run(&args, out, err)),
        Command::Schema(args) => print::with(|out, err| schema::run(&args, out, err)),
        Command::Agents(args) => {
            print::with(|out, err| agents::run(&args, &mut std::io::stdin().lock(), out, err))
        }
        Command::Log(args) => log::run(&args),
        Command::Token(args) => token::run(&args),
        Command::AaepStdio(args) => print::with(|out, _| aaep_stdio::run(&args, out)),
        Command::Hook(args) => hook::run(&args),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => print::failure(&error),
    }
}
