//! Stores of servers on file systems of their own that can be full.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How many megabytes a store has.
const SIZE: usize = 192;

/// File systems in memory, which are unmounted in the end.
pub(crate) struct Disks {
    folders: Vec<PathBuf>,
}

impl Disks {
    /// Mounts so many, which takes the rights of root.
    pub(crate) fn mount(folder: &Path, count: usize) -> Self {
        let mut disks = Self { folders: Vec::new() };
        for index in 0..count {
            let own = folder.join(format!("disk-{index}"));
            std::fs::create_dir_all(&own).expect("a folder");
            let mount =
                Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={SIZE}m"), "ops"]).arg(&own).status();
            assert!(
                mount.is_ok_and(|status| status.success()),
                "{} can't be mounted: a full disk needs root, or `unshare --user --map-root-user --mount`",
                own.display()
            );
            disks.folders.push(own);
        }
        disks
    }

    /// Where the servers keep what they store.
    pub(crate) fn stores(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.join("store")).collect()
    }

    /// Takes all the space that is left.
    pub(crate) fn fill(&self, index: usize) {
        let mut file = std::fs::File::create(self.folders[index].join("junk")).expect("a file");
        let block = vec![7; 1 << 20];
        for size in [1 << 20, 4 << 10, 1] {
            while file.write_all(&block[..size]).is_ok() {}
        }
    }

    pub(crate) fn free(&self, index: usize) {
        std::fs::remove_file(self.folders[index].join("junk")).expect("the file");
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        for folder in &self.folders {
            // A server that has just been killed may still be there.
            let _ = Command::new("umount").arg("--lazy").arg(folder).status();
        }
    }
}
