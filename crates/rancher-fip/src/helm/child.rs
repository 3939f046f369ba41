//! One child process, on its leash.

use std::{
    io,
    process::Stdio,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::join;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    time::timeout,
};

use super::leash::{Ended, Leash, Life};

/// How much of each output is kept.
const KEPT: usize = 256 << 10;
/// Output that a grandchild still holds open after the child's end is not waited for longer.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How a child ended.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) success: bool,
    /// Why it was told to end, if it was.
    pub(super) ended: Option<Ended>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Starts a child in a process group of its own and sees it through. If this is dropped, the whole group is killed.
pub(super) async fn see_through(
    mut command: Command,
    life: Life,
    leash: &Leash,
    guarded: bool,
) -> io::Result<Outcome> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut group = Group::new(command.spawn()?);
    let (stdout, stderr) = (group.child.stdout.take(), group.child.stderr.take());
    let kept = (Mutex::default(), Mutex::default());
    let mut reading = std::pin::pin!(join(keep(stdout, &kept.0), keep(stderr, &kept.1)));
    let leader = group.leader;
    let (status, read, ended) = {
        let child = &mut group.child;
        let mut work = std::pin::pin!(async {
            let mut read = false;
            loop {
                tokio::select! {
                    biased;
                    status = child.wait() => return (status, read),
                    _ = reading.as_mut(), if !read => read = true,
                }
            }
        });
        let (done, ended) = leash.hold(life, guarded, work.as_mut(), || signal(leader, Signal::TERM)).await;
        let (status, read) = if let Some(done) = done {
            done
        } else {
            signal(leader, Signal::KILL);
            work.await
        };
        (status?, read, ended)
    };
    group.over();
    if !read {
        let _ = timeout(LAST_WORDS, reading).await;
    }
    let take =
        |kept: &Mutex<Vec<u8>>| std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Outcome { success: status.success(), ended, stdout: take(&kept.0), stderr: take(&kept.1) })
}

/// Reads to the end and keeps the last part, so that a talkative child is never blocked.
async fn keep(pipe: Option<impl AsyncRead + Unpin>, kept: &Mutex<Vec<u8>>) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 8 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(buffer.iter().take(count));
        if kept.len() > 2 * KEPT {
            let surplus = kept.len() - KEPT;
            kept.drain(..surplus);
        }
    }
}

fn signal(leader: Option<Pid>, signal: Signal) {
    if let Some(leader) = leader {
        // There is nobody to signal if it has just ended.
        let _ = kill_process_group(leader, signal);
    }
}

/// A child that leads a process group. Its helpers (plugins, logins) die with it.
struct Group {
    child: Child,
    /// `None` once the child was waited for: the number may then be another's.
    leader: Option<Pid>,
}

impl Group {
    fn new(child: Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { child, leader }
    }

    /// The child is dead.
    fn over(&mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        signal(self.leader, Signal::KILL);
    }
}
