//! The proxies that are compared, each a process of its own.

use std::{io, net::SocketAddr, path::Path, process::Stdio, time::Duration};

use kube_assets::ProxyAssets;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, sleep},
};

use super::load::Kind;

/// What the names of its kinds begin with.
pub(crate) const HAPROXY: &str = "HAProxy";
pub(crate) const NGINX: &str = "nginx";

/// A process that answers lines with lines.
pub(crate) struct Player {
    child: Child,
    stdin: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Player {
    /// Starts this program in one of its roles.
    pub(crate) async fn start(arguments: &[String]) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("lycke-role")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a process without standard input and output"));
        };
        let mut player = Self { child, stdin, answers: BufReader::new(stdout).lines() };
        player.answer().await?;
        Ok(player)
    }

    pub(crate) async fn tell(&mut self, line: &str) -> io::Result<()> {
        self.ask(line).await.map(drop)
    }

    /// The same where the answer matters.
    pub(crate) async fn ask(&mut self, line: &str) -> io::Result<String> {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await?;
        self.answer().await
    }

    async fn answer(&mut self) -> io::Result<String> {
        match self.answers.next_line().await? {
            Some(line) => Ok(line),
            None => Err(io::Error::other(format!("a process has ended: {:?}", self.child.wait().await?))),
        }
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// The processor time that it has used so far.
    pub(crate) fn processor_time(&self) -> Duration {
        self.id().map(processor_time).unwrap_or_default()
    }

    /// Ends the process, and with it everything that it listens to.
    pub(crate) async fn end(self) -> io::Result<()> {
        let Self { mut child, stdin, .. } = self;
        drop(stdin);
        child.wait().await?;
        Ok(())
    }
}

/// One of the proxies.
pub(crate) struct Proxy {
    pub(crate) name: &'static str,
    pub(crate) at: SocketAddr,
    pub(crate) process: Process,
}

pub(crate) enum Process {
    Ours(Player),
    Other(Child),
}

impl Proxy {
    /// Whether it can do this at all: `HAProxy` carries no datagrams.
    pub(crate) fn serves(&self, kind: Kind) -> bool {
        kind != Kind::Datagrams || !self.name.starts_with(HAPROXY)
    }

    /// Its process.
    fn id(&self) -> Option<u32> {
        match &self.process {
            Process::Ours(player) => player.id(),
            Process::Other(child) => child.id(),
        }
    }

    /// The processor time that it has used so far, with that of its children.
    pub(crate) fn processor_time(&self) -> Duration {
        self.id().map(with_children).unwrap_or_default().into_iter().map(processor_time).sum()
    }
}

fn with_children(process: u32) -> Vec<u32> {
    let children = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    std::iter::once(process).chain(children.split_whitespace().filter_map(|id| id.parse().ok())).collect()
}

fn processor_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in brackets, may contain anything; the numbers come after it.
    let after = stat.rsplit_once(')').map(|(_, after)| after).unwrap_or_default();
    let ticks: u64 = after.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

pub(crate) async fn ours(at: SocketAddr, backends: &[SocketAddr]) -> io::Result<Proxy> {
    let mut player = Player::start(&["plane".to_owned()]).await?;
    player.tell(&line("web", 20_000, at, backends)).await?;
    Ok(Proxy { name: "cloudlycke", at, process: Process::Ours(player) })
}

/// What the plane is told about a load balancer.
pub(crate) fn line(name: &str, connections: usize, at: SocketAddr, backends: &[SocketAddr]) -> String {
    let backends: Vec<_> = backends.iter().map(SocketAddr::to_string).collect();
    format!("{name} {connections} {at} {}", backends.join(" "))
}

/// `HAProxy`. With `splice` it may move bytes inside the kernel, which is off by default.
pub(crate) async fn haproxy(
    assets: &ProxyAssets,
    place: &Path,
    at: SocketAddr,
    backends: &[SocketAddr],
    splice: bool,
) -> io::Result<Proxy> {
    let name = if splice { "HAProxy splice" } else { HAPROXY };
    let server = |(n, backend): (usize, &SocketAddr)| format!("  server s{n} {backend}");
    let servers = backends.iter().enumerate().map(server).collect::<Vec<_>>().join("\n");
    let splicing = if splice { "  option splice-auto\n" } else { "" };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let config = format!(
        "global\n  maxconn 5000\n  nbthread {threads}\n\
         defaults\n  mode tcp\n  timeout connect 2s\n  timeout client 600s\n  timeout server 600s\n{splicing}\
         listen web\n  bind {at}\n  balance roundrobin\n{servers}\n"
    );
    let file = place.join(format!("{}.cfg", name.replace(' ', "-")));
    std::fs::write(&file, config)?;
    let mut command = with_libraries(&assets.haproxy, assets)?;
    command.arg("-db").arg("-f").arg(file);
    start(name, command, at).await
}

/// nginx with its stream module.
pub(crate) async fn nginx(
    assets: &ProxyAssets,
    place: &Path,
    at: SocketAddr,
    backends: &[SocketAddr],
) -> io::Result<Proxy> {
    let servers = backends.iter().map(|backend| format!("server {backend};")).collect::<Vec<_>>().join(" ");
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let config = format!(
        "load_module {};\ndaemon off;\nworker_processes {workers};\npid nginx.pid;\n\
         error_log nginx.log crit;\nworker_rlimit_nofile 20000;\n\
         events {{ worker_connections 10000; }}\n\
         stream {{\n  upstream web {{ {servers} }}\n\
           server {{ listen {at} backlog=4096; proxy_pass web; proxy_connect_timeout 2s; proxy_timeout 600s; }}\n  \
           server {{ listen {at} udp reuseport; proxy_pass web; proxy_timeout 60s; }}\n}}\n",
        assets.stream.display()
    );
    let file = place.join("nginx.conf");
    std::fs::write(&file, config)?;
    let mut command = with_libraries(&assets.nginx, assets)?;
    command.arg("-p").arg(place).arg("-c").arg(file).arg("-e").arg("nginx.log");
    start(NGINX, command, at).await
}

/// A program that finds the libraries which came with it.
fn with_libraries(program: &Path, assets: &ProxyAssets) -> io::Result<Command> {
    let mut command = Command::new(program);
    if !assets.libraries.is_empty() {
        let folders = std::env::join_paths(&assets.libraries).map_err(io::Error::other)?;
        command.env("LD_LIBRARY_PATH", folders);
    }
    Ok(command)
}

async fn start(name: &'static str, mut command: Command, at: SocketAddr) -> io::Result<Proxy> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let start = Instant::now();
    while TcpStream::connect(at).await.is_err() {
        if let Some(status) = child.try_wait()? {
            return Err(io::Error::other(format!("{name} has ended: {status}")));
        }
        if start.elapsed() > Duration::from_secs(20) {
            return Err(io::Error::other(format!("{name} does not listen at {at}")));
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(Proxy { name, at, process: Process::Other(child) })
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // nginx leaves its workers behind when it is killed; this asks it to end with them.
        if let Process::Other(child) = &mut self.process
            && let Some(process) = child.id()
        {
            let _ = std::process::Command::new("kill").arg(process.to_string()).status();
            for _ in 0..100 {
                if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
