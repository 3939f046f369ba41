//! The server's certificates, kept up to date.

use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use cloudberth_core::{Clock, Tick};
use jiff::Timestamp;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{
    material::{self, Named},
    selfsigned, validity,
};
use crate::error::{Error, Result};

/// Where certificates come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateSource {
    /// `--tls-cert-file` and `--tls-private-key-file`: both, or neither.
    pub files: Option<(PathBuf, PathBuf)>,
    /// `--cert-dir`: a pair is read from here, and written here if there is none. Existing files are never changed or
    /// removed.
    pub directory: Option<PathBuf>,
    /// The pair's name in the directory, without `.crt` and `.key`: `cloud-controller-manager`.
    pub pair_name: String,
    /// `--tls-sni-cert-key`: certificate, key, and the names that they are for (empty: those in the certificate).
    pub sni: Vec<(PathBuf, PathBuf, Vec<String>)>,
}

/// The content of two files: certificates, and their key.
type Held = (Vec<u8>, Vec<u8>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Watched {
    what: &'static str,
    certificate: PathBuf,
    key: PathBuf,
    names: Vec<String>,
}

impl Watched {
    fn read(&self) -> Result<Held> {
        Ok((material::read(self.what, &self.certificate)?, material::read(self.what, &self.key)?))
    }

    fn load(&self, (certificate, key): &Held) -> Result<Named> {
        let key = material::pair(&format!("{} {}", self.what, self.certificate.display()), certificate, key)?;
        let names = if self.names.is_empty() {
            material::names(&key)
        } else {
            self.names.iter().map(|name| name.to_ascii_lowercase()).collect()
        };
        Ok(Named { names, key })
    }

    fn changed(&self, before: Option<&Held>) -> Result<Option<(Held, Named)>> {
        let held = self.read()?;
        if Some(&held) == before {
            return Ok(None);
        }
        let named = self.load(&held)?;
        Ok(Some((held, named)))
    }
}

struct Loaded {
    main: Arc<CertifiedKey>,
    sni: Vec<Named>,
    /// The content of the files when they were last loaded, in the order of `watched`.
    contents: Vec<Held>,
    made: Option<Tick>,
}

/// The certificates in use. Files are reloaded when they change; if the new content is broken, the old stays in use.
pub struct CertificateStore {
    watched: Vec<Watched>,
    main_from_file: bool,
    address: IpAddr,
    clock: Arc<dyn Clock>,
    loaded: Mutex<Loaded>,
    notices: Vec<String>,
}

impl CertificateStore {
    /// Loads or makes the certificates for a server at `address`.
    pub fn open(source: &CertificateSource, address: IpAddr, clock: Arc<dyn Clock>) -> Result<Self> {
        let mut notices = Vec::new();
        let main = match (&source.files, &source.directory) {
            (Some((certificate, key)), _) => Some(("--tls-cert-file", certificate.clone(), key.clone())),
            (None, Some(directory)) => {
                let file = |end: &str| directory.join(format!("{}.{end}", source.pair_name));
                let (certificate, key) = (file("crt"), file("key"));
                let unusable = ensure_pair(&certificate, &key, address, &*clock)?;
                let main = unusable.is_none().then_some(("--cert-dir", certificate, key));
                notices.extend(unusable);
                main
            }
            (None, None) => None,
        };
        let main_from_file = main.is_some();
        let mut watched: Vec<_> = main
            .map(|(what, certificate, key)| Watched { what, certificate, key, names: Vec::new() })
            .into_iter()
            .collect();
        watched.extend(source.sni.iter().map(|(certificate, key, names)| Watched {
            what: "--tls-sni-cert-key",
            certificate: certificate.clone(),
            key: key.clone(),
            names: names.clone(),
        }));
        let contents = watched.iter().map(Watched::read).collect::<Result<Vec<_>>>()?;
        let mut named =
            watched.iter().zip(&contents).map(|(from, held)| from.load(held)).collect::<Result<Vec<_>>>()?;
        let (main, made) = if main_from_file {
            (named.remove(0).key, None)
        } else {
            (in_memory(address, &*clock)?, Some(clock.now()))
        };
        let loaded = Mutex::new(Loaded { main, sni: named, contents, made });
        Ok(Self { watched, main_from_file, address, clock, loaded, notices })
    }

    /// Remarks about the certificates, for the log.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Reloads files that changed; returns each problem as a sentence.
    pub fn refresh(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut loaded = self.lock();
        if loaded.made.is_some_and(|made| self.clock.now().since(made) >= selfsigned::RENEW_AFTER) {
            match in_memory(self.address, &*self.clock) {
                Ok(key) => (loaded.main, loaded.made) = (key, Some(self.clock.now())),
                Err(error) => problems.push(error.to_string()),
            }
        }
        for (at, from) in self.watched.iter().enumerate() {
            match from.changed(loaded.contents.get(at)) {
                Ok(None) => {}
                Ok(Some((held, named))) => {
                    if at == 0 && self.main_from_file {
                        loaded.main = named.key;
                    } else if let Some(slot) = loaded.sni.get_mut(at - usize::from(self.main_from_file)) {
                        *slot = named;
                    }
                    if let Some(slot) = loaded.contents.get_mut(at) {
                        *slot = held;
                    }
                    tracing::info!(file = %from.certificate.display(), "certificate reloaded");
                }
                Err(error) => problems.push(format!("the certificate in use stays: {error}")),
            }
        }
        problems
    }

    /// When the first of the certificates in use ends; `None` if none of them can be read.
    pub(crate) fn ends(&self) -> Option<Timestamp> {
        let loaded = self.lock();
        let keys = loaded.sni.iter().map(|named| &named.key).chain([&loaded.main]);
        keys.filter_map(|key| validity::ends(key.cert.first()?)).min()
    }

    fn choose(&self, asked: Option<&str>) -> Arc<CertifiedKey> {
        let loaded = self.lock();
        Arc::clone(material::choose(&loaded.sni, asked).map_or(&loaded.main, |named| &named.key))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Loaded> {
        // Every change is one assignment of a whole value.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvesServerCert for CertificateStore {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.choose(hello.server_name()))
    }
}

impl fmt::Debug for CertificateStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateStore").field("watched", &self.watched).finish_non_exhaustive()
    }
}

fn in_memory(address: IpAddr, clock: &dyn Clock) -> Result<Arc<CertifiedKey>> {
    let made = selfsigned::make(address, clock.wall())?;
    material::pair("the certificate made in memory", made.chain.as_bytes(), made.key.as_bytes())
}

/// Makes a pair if neither file exists. An existing file is never touched: a key that cannot be read, or that lacks its
/// certificate, is somebody's. Returns why the pair cannot be used, if so.
fn ensure_pair(certificate: &Path, key: &Path, address: IpAddr, clock: &dyn Clock) -> Result<Option<String>> {
    let missing = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let trouble = |path: &Path| std::fs::File::open(path).err();
    let found = [(certificate, key, trouble(certificate)), (key, certificate, trouble(key))];
    if found.iter().all(|(.., error)| error.as_ref().is_some_and(missing)) {
        return make_pair(certificate, key, address, clock).map(|()| None);
    }
    let wrong =
        found.into_iter().filter_map(|(path, other, error)| Some((path.display(), other.display(), error?)));
    // Report the file that cannot be read rather than the one that is missing.
    let Some((path, other, error)) = wrong.min_by_key(|(.., error)| missing(error)) else { return Ok(None) };
    let instead = "the files stay as they are and a certificate in memory is shown";
    Ok(Some(if missing(&error) {
        format!(
            "--cert-dir: {path} is missing beside {other}; {instead}: put it there, or remove the other one to have a new \
             pair made, and start again"
        )
    } else {
        format!(
            "--cert-dir: cannot read {path}: {error}; {instead}: let the user of this program read it, or remove both \
             files to have a new pair made, and start again"
        )
    }))
}

fn make_pair(certificate: &Path, key: &Path, address: IpAddr, clock: &dyn Clock) -> Result<()> {
    let made = selfsigned::make(address, clock.wall())?;
    let cannot = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| Error::new(format!("--cert-dir: cannot write {path}: {error}"))
    };
    if let Some(directory) = certificate.parent() {
        std::fs::create_dir_all(directory).map_err(cannot(directory))?;
    }
    write_new(key, &made.key, 0o600).map_err(cannot(key))?;
    write_new(certificate, &made.chain, 0o644).map_err(|error| {
        // We made it a moment ago, and it is of no use alone.
        let _ = std::fs::remove_file(key);
        cannot(certificate)(error)
    })
}

/// Writes a new file; fails if it exists.
fn write_new(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cloudberth_http::surroundings::SystemClock;

    use super::*;

    const ANYWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

    fn clock() -> Arc<dyn Clock> {
        Arc::new(SystemClock::starting_at("2031-05-06T12:00:00Z".parse().unwrap()))
    }

    fn shown(store: &CertificateStore, name: Option<&str>) -> Vec<u8> {
        store.choose(name).cert[0].to_vec()
    }

    fn in_directory(directory: &Path) -> CertificateSource {
        CertificateSource {
            directory: Some(directory.to_owned()),
            pair_name: "cloud-controller-manager".to_owned(),
            ..CertificateSource::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_directory_keeps_its_pair_and_files_go_before_it() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("new");
        let source = in_directory(&directory);
        let first = CertificateStore::open(&source, ANYWHERE, clock()).unwrap();
        let again = CertificateStore::open(&source, ANYWHERE, clock()).unwrap();
        assert_eq!(shown(&first, None), shown(&again, None), "the pair is used again");
        let (certificate, key) =
            (directory.join("cloud-controller-manager.crt"), directory.join("cloud-controller-manager.key"));
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        let other = place.path().join("other");
        let elsewhere = CertificateSource { files: Some((certificate, key)), ..in_directory(&other) };
        let given = CertificateStore::open(&elsewhere, ANYWHERE, clock()).unwrap();
        assert_eq!(shown(&given, None), shown(&first, None), "files go before the directory");
        assert!(!other.exists(), "and nothing is made there");
        let memory = CertificateStore::open(&CertificateSource::default(), ANYWHERE, clock()).unwrap();
        assert_ne!(shown(&memory, None), shown(&first, None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_in_the_directory_is_never_replaced() {
        let place = tempfile::tempdir().unwrap();
        // What stands where the certificate and the key belong: nothing, text, or something that nobody can read.
        let table = [
            ("a key alone", None, Some("a key"), ["crt is missing", "put it there"]),
            ("a certificate alone", Some("a certificate"), None, ["key is missing", "put it there"]),
            (
                "an unreadable key",
                Some("a certificate"),
                Some(""),
                ["key: ", "let the user of this program read it"],
            ),
            (
                "an unreadable certificate",
                Some(""),
                Some("a key"),
                ["crt: ", "let the user of this program read it"],
            ),
            ("an unreadable key alone", None, Some(""), ["key: ", "let the user of this program read it"]),
            ("nothing can be read", Some(""), Some(""), ["crt: ", "let the user of this program read it"]),
        ];
        for (at, (case, certificate, key, told)) in table.into_iter().enumerate() {
            let directory = place.path().join(at.to_string());
            std::fs::create_dir(&directory).unwrap();
            let put = |end: &str, what: Option<&str>| {
                let path = directory.join(format!("cloud-controller-manager.{end}"));
                match what {
                    None => {}
                    // An administrator reads whatever the mode; nobody reads through a file that links to itself.
                    Some("") => std::os::unix::fs::symlink(&path, &path).unwrap(),
                    Some(text) => std::fs::write(&path, text).unwrap(),
                }
                path
            };
            let paths = [put("crt", certificate), put("key", key)];
            let held = || {
                paths.each_ref().map(|path| {
                    (path.symlink_metadata().map(|m| m.file_type()).ok(), std::fs::read(path).ok())
                })
            };
            let before = held();
            let store = CertificateStore::open(&in_directory(&directory), ANYWHERE, clock()).unwrap();
            assert_eq!(held(), before, "L5-900: {case}");
            let notice = store.notices().join("\n");
            assert!(told.iter().all(|part| notice.contains(part)), "{case}: {notice}");
            assert!(notice.contains(directory.to_str().unwrap()), "{case}: {notice}");
            assert_eq!((shown(&store, None).is_empty(), store.refresh()), (false, vec![]), "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn changed_files_are_taken_over_and_broken_ones_are_not() {
        let place = tempfile::tempdir().unwrap();
        let sni = place.path().join("sni");
        CertificateStore::open(&in_directory(&sni), ANYWHERE, clock()).unwrap();
        let path = |directory: &Path, end: &str| directory.join(format!("cloud-controller-manager.{end}"));
        let main = place.path().join("main");
        let mut source = in_directory(&main);
        source.sni = vec![(path(&sni, "crt"), path(&sni, "key"), vec!["Other.example".to_owned()])];
        let store = CertificateStore::open(&source, ANYWHERE, clock()).unwrap();
        let before = (shown(&store, None), shown(&store, Some("other.example")));
        assert_ne!(before.0, before.1);
        assert_eq!(shown(&store, Some("localhost")), before.0);
        assert_eq!(store.refresh(), [""; 0]);

        for (directory, at) in [(&main, 0), (&sni, 1)] {
            let now = (shown(&store, None), shown(&store, Some("other.example")));
            let fresh = selfsigned::make(ANYWHERE, clock().wall()).unwrap();
            std::fs::write(path(directory, "crt"), &fresh.chain).unwrap();
            let problems = store.refresh();
            assert!(problems[0].contains("do not make a pair"), "half of a change: {problems:?}");
            assert_eq!((shown(&store, None), shown(&store, Some("other.example"))), now);
            std::fs::write(path(directory, "key"), &fresh.key).unwrap();
            assert_eq!(store.refresh(), [""; 0]);
            let then = (shown(&store, None), shown(&store, Some("other.example")));
            assert_eq!((now.0 != then.0, now.1 != then.1), (at == 0, at == 1));
        }
        std::fs::remove_file(path(&main, "key")).unwrap();
        assert!(store.refresh()[0].contains("cannot read"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_certificate_in_memory_is_renewed_before_it_ends() {
        let store = CertificateStore::open(&CertificateSource::default(), ANYWHERE, clock()).unwrap();
        let first = shown(&store, None);
        tokio::time::advance(Duration::from_secs(300 * 24 * 3600)).await;
        assert_eq!((store.refresh(), shown(&store, None) == first), (vec![], true));
        let before = store.ends();
        tokio::time::advance(Duration::from_secs(40 * 24 * 3600)).await;
        assert_eq!((store.refresh(), shown(&store, None) == first), (vec![], false));
        assert!(before.is_some() && before < store.ends(), "{before:?}");
    }
}
