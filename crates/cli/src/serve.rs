//! `banister serve`: the gateway.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use banister_events::aep::mapping::{Agents, Mapping};
use banister_gateway::clock::Clock;
use banister_gateway::keys::{Keys, private_dir, private_file};
use banister_gateway::policy::{ORG, RuleFile, RuleFiles};
use banister_gateway::serve::{Serving, start};
use banister_gateway::{Gateway, Settings};
use banister_hook::{Conf, Section};
use banister_policy::Pack;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::Config;
use crate::data_dir::{DataDir, Running, config_dir, socket};
use crate::env;
use crate::failure::{Failure, GOOD};
use crate::print;

/// Where the gateway listens unless it is told otherwise.
pub(crate) const LISTEN: &str = "127.0.0.1:7717";
/// How long a hook waits for a gateway that went away.
const RECONNECT: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:7717]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    data_dir: DataDir,
    /// Your rules, on top of the built-in ones
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The embedded rules: default, strict, permissive or ci [default: default]
    #[arg(long, value_name = "PACK")]
    pack: Option<Pack>,
    /// Shadow rules: their verdicts are recorded and decide nothing
    #[arg(long, value_name = "FILE")]
    shadow: Option<PathBuf>,
    /// The configuration file [default: config.toml in the configuration directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<u8> {
    let config = Config::read(args.config.as_deref())?;
    let upstreams = config.upstreams()?;
    let data_dir = DataDir { data: args.data_dir.data.clone().or(config.data.clone()) };
    let default = LISTEN.parse().context("the default address")?;
    let listen = args.listen.or(config.listen).unwrap_or(default);
    let data = data_dir.path()?;
    let socket = socket(&data_dir, &data);
    let named = Named { policy: args.policy.clone(), pack: args.pack, shadow: args.shadow.clone() };
    let mut settings = settings(data.clone(), &named, &config)?;
    settings.sync_allow = config.sync_allow;
    settings.capture = config.journal.capture();
    settings.push = config.push;
    if let Some(minutes) = config.idle_minutes {
        settings.idle = (minutes > 0).then(|| Duration::from_mins(minutes.into()));
    }
    settings.upstreams = upstreams;
    if let Some(seconds) = config.ask_seconds {
        settings.ask_time = Duration::from_secs(seconds.get().into());
    }
    // An agent that could edit these would write its own rules.
    settings.own.extend(args.config.iter().chain([&socket]).flat_map(|path| both_names(path)));
    logging("info");
    runtime()?.block_on(async {
        let up = up(settings, listen, &socket).await?;
        let first = up.gateway.keys.is_fresh();
        print::tell(&format!("Banister listens on http://{}", up.serving.address));
        print::tell(&format!("  socket  {}", up.serving.socket.display()));
        print::tell(&format!("  data    {}", data.display()));
        print::tell(&format!("  hook    {} AGENT EVENT", up.hook.display()));
        if first {
            print::tell("Sign in with this link; it works once:");
            print::tell(&format!("  {}", up.gateway.login_link()?));
        } else {
            print::tell("For a login link: banister token login");
        }
        interrupted().await?;
        print::tell("Stopping.");
        up.serving.stop().await;
        Ok(GOOD)
    })
}

/// A gateway that runs, with its hook in place.
pub(crate) struct Up {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) serving: Serving,
    /// The hook's executable.
    pub(crate) hook: PathBuf,
}

/// Starts a gateway and puts the hook and its configuration in place.
pub(crate) async fn up(
    settings: Settings,
    listen: SocketAddr,
    socket: &Path,
) -> anyhow::Result<Up> {
    let data = settings.data.clone();
    let gateway = Gateway::open(settings, Clock::System).map_err(|error| match error {
        banister_gateway::Error::Policy(_) => Failure::usage(error.to_string()).into(),
        other => anyhow::Error::from(other),
    })?;
    let serving = start(&gateway, listen, socket).await?;
    let hook = put_hook(&gateway, &data, &serving.socket)?;
    let address = serving.address.to_string();
    Running { socket: serving.socket.clone(), address }.write(&data)?;
    Ok(Up { gateway, serving, hook })
}

/// The rules that were named on the command line: they win over the configuration.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// The person's.
    pub(crate) policy: Option<PathBuf>,
    /// The embedded ones.
    pub(crate) pack: Option<Pack>,
    /// Those that are only tried.
    pub(crate) shadow: Option<PathBuf>,
}

/// The settings of a gateway for a person.
pub(crate) fn settings(data: PathBuf, named: &Named, config: &Config) -> anyhow::Result<Settings> {
    let absolute =
        |path: &PathBuf| std::path::absolute(path).with_context(|| path.display().to_string());
    let user = named.policy.as_ref().or(config.policy.as_ref()).map(absolute).transpose()?;
    let usual = || config_dir().map(|dir| RuleFile::usual(dir.join("policy.yaml")));
    let shadow = named.shadow.as_ref().or(config.shadow.as_ref()).map(absolute).transpose()?;
    let policy = RuleFiles {
        pack: named.pack.or(config.pack).unwrap_or_default(),
        org: Some(RuleFile::usual(ORG)),
        user: user.map(RuleFile::named).or_else(usual),
        shadow: shadow.map(RuleFile::named),
    };
    let mut own: Vec<PathBuf> = config_dir().into_iter().collect();
    own.push(PathBuf::from("/etc/banister"));
    let files = [&policy.user, &policy.shadow];
    own.extend(files.into_iter().flatten().flat_map(|file| both_names(&file.path)));
    Ok(Settings { home: env::HOME.path(), own, policy, ..Settings::new(data) })
}

/// A file's path as it was given, and as it is without links.
fn both_names(path: &Path) -> Vec<PathBuf> {
    let names = [std::path::absolute(path), path.canonicalize()];
    names.into_iter().filter_map(Result::ok).collect()
}

/// Puts the hook beside its configuration. Beside us stands the small binary; without it, we are the hook too.
fn put_hook(gateway: &Gateway, data: &Path, socket: &Path) -> anyhow::Result<PathBuf> {
    let dir = data.join("hook");
    private_dir(&dir)?;
    let conf = conf(gateway.agents(), gateway, socket)?;
    private_file(&dir.join(banister_hook::CONF_FILE), banister_hook::render(&conf).as_bytes())?;
    let ourselves = std::env::current_exe()?;
    let small = ourselves.with_file_name("banister-hook");
    let source = if small.is_file() { small } else { ourselves };
    let hook = dir.join("banister-hook");
    // Replaced by renaming: an agent may be running the one that is there.
    let fresh = dir.join("banister-hook.new");
    std::fs::copy(&source, &fresh).with_context(|| source.display().to_string())?;
    std::fs::rename(&fresh, &hook).with_context(|| hook.display().to_string())?;
    Ok(hook)
}

fn conf(agents: &Agents, gateway: &Gateway, socket: &Path) -> anyhow::Result<Conf> {
    let key = std::fs::read_to_string(gateway.keys.file(Keys::AGENT))?;
    let mut sections = Vec::new();
    for agent in agents.iter() {
        let mut names = vec![agent.name.as_str(), agent.agent.as_str()];
        names.dedup();
        for name in names {
            sections.extend(agent_sections(agent, name));
        }
    }
    Ok(Conf {
        socket: socket.display().to_string(),
        key: key.trim().to_owned(),
        spool: gateway.spool_dir().display().to_string(),
        reconnect: RECONNECT,
        sections,
    })
}

fn agent_sections(agent: &Mapping, name: &str) -> Vec<Section> {
    let gated = agent.gated_hooks();
    agent
        .hooks()
        .map(|(hook, control)| {
            let mut section = Section::strictest(name, hook);
            section.gated = gated.contains(&hook);
            if let Some(milliseconds) = control.deadline_ms {
                section.deadline = Duration::from_millis(milliseconds);
            }
            if let Some(fallback) = &control.fallback {
                section.exit = fallback.exit;
                section.stdout =
                    fallback.stdout.as_ref().map(ToString::to_string).unwrap_or_default();
                section.stdout = section.stdout.replace("{message}", "{why}");
                let line = fallback.stderr.as_deref().unwrap_or_default();
                section.stderr = line.replace("{message}", "{why}");
            }
            section
        })
        .collect()
}

pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

pub(crate) fn logging(default: &str) {
    let filter = env::LOG.get().unwrap_or_else(|| default.to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(filter)
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    // A second subscriber in one process is not worth stopping for.
    let _set = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
}

/// Waits for Ctrl-C or a request to stop.
pub(crate) async fn interrupted() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
