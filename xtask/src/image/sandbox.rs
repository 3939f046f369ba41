//! The program of an image, started as a container runtime would: its own root, read-only, as its own user.
//!
//! `unshare` and `chroot` do it; they need to be root. The network stays that of the machine.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::inspect::Found;
use super::rootfs::{CERTIFICATES, USER};
use crate::Result;
use crate::archive::{Content, Tree, write};

/// Mounts, then becomes the program. The arguments: root, a folder with the files to mount, user, program and flags.
const SCRIPT: &str = r#"set -e
root=$1 files=$2 user=$3; shift 3
mount --bind "$root" "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
cp "$files/kubeconfig" "$root/tmp/kubeconfig"
chown "$user" "$root/tmp/kubeconfig"
for name in etc/hosts etc/resolv.conf etc/ssl/certs/ca-certificates.crt; do
  mount --bind "$files/$name" "$root/$name"
done
mount -o remount,ro,bind "$root"
exec chroot --userspec="$user" "$root" "$@""#;

/// What lies around the program besides its image.
#[derive(Clone, Debug)]
pub(crate) struct Around<'a> {
    pub(crate) kubeconfig: &'a str,
    pub(crate) resolv_conf: &'a str,
    /// The certificates at the place where the image has its own.
    pub(crate) certificates: &'a str,
    pub(crate) env: &'a [(String, String)],
}

/// A program that runs in a root of its own. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Inside {
    child: Child,
    log: PathBuf,
}

/// Why there can be no sandbox here, if so.
pub(crate) fn impossible() -> Option<String> {
    let tried = Command::new("unshare").args(["-mpf", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
    match tried {
        Ok(ran) if ran.status.success() => None,
        Ok(ran) => Some(format!("no mounts are allowed: {}", String::from_utf8_lossy(&ran.stderr).trim())),
        Err(why) => Some(format!("unshare: {why}")),
    }
}

/// Unpacks an image for [`start`]. `dir` is new.
pub(crate) fn unpack(dir: &Path, content: &Tree) -> Result<()> {
    for (path, entry) in content {
        let to = dir.join(path);
        let failed = |why| format!("{}: {why}", to.display());
        match &entry.content {
            Content::Directory => fs::create_dir_all(&to).map_err(failed)?,
            Content::File(bytes) => write(&to, bytes)?,
            Content::Link(target) => symlink(target, &to).map_err(failed)?,
        }
        if !matches!(entry.content, Content::Link(_)) {
            fs::set_permissions(&to, fs::Permissions::from_mode(entry.mode)).map_err(failed)?;
        }
    }
    // A runtime puts its own files over these.
    for name in ["etc/hosts", "etc/resolv.conf"] {
        write(&dir.join(name), b"")?;
    }
    Ok(())
}

/// Starts a program of the image in the root at `root`, with the environment of the image. `files` is a new folder.
pub(crate) fn start(
    root: &Path,
    files: &Path,
    image: &Found,
    called: &[&str],
    around: &Around<'_>,
) -> Result<Inside> {
    write(&files.join("kubeconfig"), around.kubeconfig.as_bytes())?;
    write(&files.join("etc/hosts"), b"127.0.0.1 localhost\n")?;
    write(&files.join("etc/resolv.conf"), around.resolv_conf.as_bytes())?;
    write(&files.join(CERTIFICATES), around.certificates.as_bytes())?;
    let log = files.join("log");
    let to = File::create(&log).map_err(|why| format!("{}: {why}", log.display()))?;
    let again = to.try_clone().map_err(|why| why.to_string())?;
    let mut command = Command::new("unshare");
    // Of this machine, only where mount and chroot are.
    let path = "/usr/sbin:/usr/bin:/sbin:/bin";
    command.env_clear().env("PATH", path).args(["-mpf", "--kill-child", "sh", "-c", SCRIPT, "sh"]);
    command.arg(root).arg(files).arg(&image.config.settings.user);
    command.args(called).stdin(Stdio::null()).stdout(to).stderr(again);
    for (name, value) in around.env {
        command.env(name, value);
    }
    let child = command.spawn().map_err(|why| format!("unshare: {why}"))?;
    Ok(Inside { child, log })
}

impl Inside {
    pub(crate) fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// It has ended, and says so in its exit code.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| status.to_string())
    }

    /// What the kernel says about the program: whom it runs as and whether its root can be written to.
    pub(crate) fn confined(&self) -> Result<()> {
        let own = self.child.id();
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
        let children = children.map_err(|why| format!("/proc/{own}: {why}"))?;
        let pid = children.split_whitespace().next().ok_or("the program is gone")?;
        let read =
            |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).map_err(|why| why.to_string());
        confined(&read("status")?, &read("mountinfo")?)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn confined(status: &str, mounts: &str) -> Result<()> {
    let ids = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    for name in ["Uid:", "Gid:"] {
        let found = ids(name);
        if found.split_whitespace().count() != 4 || found.split_whitespace().any(|id| id != USER.to_string())
        {
            return Err(format!("{name} is{found}, not {USER}"));
        }
    }
    // The fifth field is the place, the sixth has the options. The last mount of a place counts.
    let options = mounts.lines().rev().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.get(4) == Some(&"/")).then(|| words.get(5).copied().unwrap_or_default())
    });
    let read_only = options.is_some_and(|options| options.split(',').any(|option| option == "ro"));
    if read_only { Ok(()) } else { Err(format!("the root is mounted {}", options.unwrap_or("not at all"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_confined_only_as_its_user_on_a_root_that_is_read_only() {
        let status =
            "Name:\tcloudberth\nUid:\t65532\t65532\t65532\t65532\nGid:\t65532\t65532\t65532\t65532\n";
        let mounts = "30 1 0:25 / / ro,relatime - ext4 /dev/vda rw\n31 30 0:26 / /tmp rw - tmpfs tmpfs rw\n";
        assert_eq!(confined(status, mounts), Ok(()));
        let root = status.replacen("65532", "0", 1);
        assert_eq!(confined(&root, mounts), Err("Uid: is\t0\t65532\t65532\t65532, not 65532".to_owned()));
        let group = status.replace("Gid:\t65532", "Gid:\t0");
        assert!(confined(&group, mounts).unwrap_err().starts_with("Gid:"));
        assert_eq!(
            confined(status, &mounts.replace("/ / ro,", "/ / rw,")),
            Err("the root is mounted rw,relatime".to_owned())
        );
        assert!(confined("", mounts).is_err() && confined(status, "").is_err());
    }

    #[test]
    fn an_image_is_unpacked_as_it_is() {
        let sample = crate::workspace::Sample::new("unpack", &[]);
        let root = sample.workspace.path("root");
        let parts = super::super::rootfs::Parts {
            variant: super::super::Variant::Plain,
            program: b"#!/bin/sh\n",
            helm: None,
            licences: "",
        };
        let packed = crate::archive::pack(&super::super::rootfs::tree(&parts)).unwrap();
        unpack(&root, &crate::archive::unpack(&packed).unwrap()).unwrap();
        let mode = |name: &str| fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("bin/cloudberth"), mode("tmp"), mode("etc/passwd")), (0o755, 0o1777, 0o644));
        let link = fs::read_link(root.join("bin/cloudscale-cloud-controller-manager")).unwrap();
        assert_eq!(link, Path::new("cloudberth"));
    }
}
