//! The state directory, opened.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Store,
    file::{FILE, FileStore},
    lock::{Lock, NoLock},
};
use crate::{
    addresses::Pools,
    state::{Balancers, Persisted, Restored},
};

/// A state directory that belongs to this process.
#[derive(Debug)]
pub struct StateDirectory {
    /// Writes to it.
    pub store: Arc<dyn Store>,
    /// What was in it.
    pub balancers: Balancers,
}

/// `$XDG_STATE_HOME/cloudlycke`, or else the place that this variable stands for.
pub fn default_directory(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let absolute = |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(absolute("HOME")?.join(".local/state"));
    absolute("XDG_STATE_HOME").or_else(home).map(|base| base.join("cloudlycke"))
}

impl StateDirectory {
    /// Takes the directory, which is made if it is missing. A state that cannot be read is set aside: managers ask for
    /// their load balancers again, and find most of them at their old addresses. The error is for people.
    pub fn open(path: &Path, pools: &Pools) -> Result<Self, String> {
        let failed = |why: io::Error| format!("state directory {}: {why}", path.display());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let lock = Lock::take(&path.join("lock")).map_err(|why| match why {
            NoLock::Failed(why) => failed(why),
            NoLock::Held(holder) => {
                let holder =
                    holder.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"));
                format!("state directory {} is in use by {holder}", path.display())
            }
        })?;
        let balancers = restore(path, pools).map_err(failed)?;
        let store = FileStore::start(path.to_owned(), lock).map_err(failed)?;
        Ok(Self { store: Arc::new(store), balancers })
    }
}

fn restore(directory: &Path, pools: &Pools) -> io::Result<Balancers> {
    let file = directory.join(FILE);
    let read = match fs::read_to_string(&file) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Balancers::default()),
        Err(why) => Err(why.to_string()),
        Ok(text) => Persisted::restore(&text, pools),
    };
    match read {
        Ok(Restored { balancers, lost }) => {
            for (key, why) in lost {
                tracing::error!(balancer = %key, "load balancer not restored: {why}");
            }
            Ok(balancers)
        }
        Err(why) => {
            let aside = directory.join("state.json.broken");
            tracing::error!(
                file = %file.display(), aside = %aside.display(),
                "state file cannot be read, starting without load balancers: {why}"
            );
            fs::rename(&file, &aside)?;
            Ok(Balancers::default())
        }
    }
}
