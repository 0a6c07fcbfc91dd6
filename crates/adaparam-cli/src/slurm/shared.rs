//! Whether the nodes see a folder.

use std::path::Path;

use anyhow::bail;

use super::ask;

/// File systems that other machines see under the same path, if they have them.
const SHARED: [&str; 15] = [
    "nfs",
    "nfs4",
    "lustre",
    "gpfs",
    "beegfs",
    "fhgfs",
    "ceph",
    "cephfs",
    "fuse.ceph",
    "glusterfs",
    "fuse.glusterfs",
    "panfs",
    "orangefs",
    "pvfs2",
    "afs",
];

/// Refuses a folder that lies on a file system of this machine alone, where some of the nodes are other machines.
pub(crate) fn refuse_a_folder_of_one_machine(
    folder: &Path,
    partition: Option<&str>,
) -> anyhow::Result<()> {
    let Some(kind) = file_system(folder) else {
        return Ok(());
    };
    if SHARED.contains(&kind.as_str()) {
        return Ok(());
    }
    let mut arguments = vec!["--noheader", "--Node", "--format=%n"];
    if let Some(partition) = partition {
        arguments.extend(["--partition", partition]);
    }
    let told = ask("sinfo", &arguments)?;
    if let Some(other) = other_machine(&told, &this_machine()) {
        bail!(
            "{}: lies on this machine's own file system ({kind}), and nodes such as {other} would not find it: put the sweep on \
             one that all nodes share, or give --shared if they do see this folder under this path",
            folder.display()
        );
    }
    Ok(())
}

fn this_machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// The first of the nodes' machines that is not this one.
fn other_machine<'a>(hosts: &'a str, this: &str) -> Option<&'a str> {
    let short = |name: &'a str| name.split('.').next().unwrap_or(name);
    let this = this.split('.').next().unwrap_or(this);
    let mut hosts = hosts.lines().map(str::trim).filter(|host| !host.is_empty());
    hosts.find(|host| short(host) != this && *host != "localhost")
}

/// The kind of file system that a folder lies on, where the system tells.
fn file_system(folder: &Path) -> Option<String> {
    let folder = std::fs::canonicalize(folder).ok()?;
    kind_in(&std::fs::read_to_string("/proc/self/mounts").ok()?, &folder)
}

fn kind_in(mounts: &str, folder: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (_, place, kind) = (fields.next()?, fields.next()?, fields.next()?);
        Some((place.replace("\\040", " "), kind))
    });
    let over = mounts.filter(|(place, _)| folder.starts_with(place));
    // Of two at the same place the later one is seen.
    let nearest = over.max_by_key(|(place, _)| Path::new(place).components().count());
    nearest.map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_says_what_a_folder_lies_on() {
        let mounts = "/dev/vda / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0\ntmpfs /home/my\\040tmp tmpfs rw 0 0\n";
        let kind = |folder: &str| kind_in(mounts, folder.as_ref()).unwrap();
        assert_eq!(kind("/var/sweep"), "ext4");
        assert_eq!(kind("/home/me/sweep"), "nfs4");
        assert_eq!(kind("/home/my tmp/sweep"), "tmpfs");
        assert_eq!(kind("/homes"), "ext4");
    }

    #[test]
    fn nodes_on_this_machine_are_no_other_machines() {
        assert_eq!(other_machine("here\nhere\n", "here.example.org"), None);
        assert_eq!(other_machine("here\nthere\n", "here"), Some("there"));
    }
}
