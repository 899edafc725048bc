//! Output files that are written whole or not at all. What is written goes to a temporary file
//! beside the target and takes its place at the end. So an older file survives whatever happens
//! before.

#[cfg(test)]
mod tests;

use crate::failure::Failure;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Symbolic links followed to a target; as many as Linux follows (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// Bytes of a target's name that the name of its temporary file repeats. A name may have 255.
const NAME_MAX: usize = 200;

/// Temporary names tried before giving up; a name is taken where an earlier process of this number
/// was killed.
const NAMES_MAX: u32 = 100;

/// Where an output file goes, checked before the load.
#[derive(Debug)]
pub struct OutputPlace {
    option: &'static str,
    path: String,
    target: Target,
    claim: Option<ClaimedFile>,
}

impl OutputPlace {
    /// Checks that the file that `option` names can be written; `-` is standard output. Nothing is
    /// changed yet.
    ///
    /// # Errors
    /// The file or its folder cannot be written, or it is another option's file.
    pub fn open(option: &'static str, path: &str) -> Result<OutputPlace, Failure> {
        let target = Target::open(Path::new(path))
            .map_err(|e| Failure::argument(option, format!("'{path}' cannot be written: {e}")))?;
        let claim = match &target {
            Target::File(file) => Some(ClaimedFile::of(option, file).map_err(|other| {
                let wrong = format!("'{path}' is the file of {other}: name another");
                Failure::argument(option, wrong)
            })?),
            Target::Stream(_) => None,
        };
        Ok(OutputPlace { option, path: path.to_owned(), target, claim })
    }

    /// Begins the new content.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn begin(self) -> io::Result<OutputFile> {
        self.target.begin()
    }

    /// Writes all of the new content.
    ///
    /// # Errors
    /// The content could not be written whole: an older file is still there.
    pub fn write(
        self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let OutputPlace { option, path, target, claim: _claim } = self;
        target.write(content).map_err(|e| {
            let wrong = format!("'{path}' could not be written: {e}");
            Failure::argument(option, wrong)
        })
    }
}

/// The files that are to be written, and the options that name them.
static CLAIMED: Mutex<Vec<(PathBuf, &'static str)>> = Mutex::new(Vec::new());

/// A file that is one option's alone, until this is dropped.
#[derive(Debug)]
struct ClaimedFile(PathBuf);

impl ClaimedFile {
    /// # Errors
    /// The option whose file it is.
    fn of(option: &'static str, path: &Path) -> Result<ClaimedFile, &'static str> {
        let name = path.file_name().unwrap_or_default();
        let folder = folder_of(path);
        let file = folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).join(name);
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, other)) = claimed.iter().find(|(of_other, _)| *of_other == file) {
            return Err(other);
        }
        claimed.push((file.clone(), option));
        Ok(ClaimedFile(file))
    }
}

impl Drop for ClaimedFile {
    fn drop(&mut self) {
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.retain(|(file, _)| *file != self.0);
    }
}

/// Writes a file that no option names.
///
/// # Errors
/// Errors of the file system. An older file is then still there.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    Target::open(path)?.write(|out| out.write_all(content))
}

/// Has what was written to a file on its disk; a pipe or a device has none.
pub fn sync(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.sync_all()?;
    }
    Ok(())
}

#[derive(Debug)]
enum Target {
    /// A regular file, there or not, at the end of all symbolic links.
    File(PathBuf),
    /// A pipe, a device or an open descriptor such as /dev/stdout: written in place.
    Stream(File),
}

impl Target {
    fn open(path: &Path) -> io::Result<Target> {
        if path == Path::new("-") {
            let stdout = io::stdout().as_fd().try_clone_to_owned()?;
            return Ok(Target::Stream(File::from(stdout)));
        }
        let append = |path: &Path| OpenOptions::new().append(true).open(path);
        let Some(path) = end_of_links(path)? else {
            return append(path).map(Target::Stream);
        };
        match fs::metadata(&path) {
            Ok(found) if !found.is_file() => return append(&path).map(Target::Stream),
            // A file that this user may not write is not replaced either.
            Ok(_) => drop(append(&path)?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        // Made and removed: whether its folder and disk take a file.
        Temporary::create(&path)?;
        Ok(Target::File(path))
    }

    fn begin(self) -> io::Result<OutputFile> {
        Ok(match self {
            Target::Stream(file) => OutputFile::Stream(BufWriter::new(file)),
            Target::File(path) => {
                let (temporary, file) = Temporary::create(&path)?;
                OutputFile::Beside(BufWriter::new(file), temporary, path)
            }
        })
    }

    fn write(self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut file = self.begin()?;
        content(&mut file)?;
        file.finish()
    }
}

/// An output file while it is written. Dropped unfinished, it leaves nothing behind.
#[derive(Debug)]
pub enum OutputFile {
    /// A temporary file, and the target that it is for.
    Beside(BufWriter<File>, Temporary, PathBuf),
    /// Something that is written in place.
    Stream(BufWriter<File>),
}

impl OutputFile {
    /// Puts the content in its place.
    ///
    /// # Errors
    /// The content could not be written whole: an older file is still there.
    pub fn finish(self) -> io::Result<()> {
        match self {
            OutputFile::Stream(mut out) => {
                out.flush()?;
                sync(out.get_ref())
            }
            OutputFile::Beside(mut out, temporary, target) => {
                out.flush()?;
                // Some file systems tell only then that the disk is full.
                out.get_ref().sync_all()?;
                temporary.put_in_place(out.get_ref(), &target)
            }
        }
    }

    fn out(&mut self) -> &mut BufWriter<File> {
        match self {
            OutputFile::Beside(out, ..) | OutputFile::Stream(out) => out,
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out().flush()
    }
}

/// A file beside its target, removed when dropped.
#[derive(Debug)]
pub struct Temporary {
    path: Option<PathBuf>,
}

impl Temporary {
    fn create(target: &Path) -> io::Result<(Temporary, File)> {
        let folder = folder_of(target);
        let is_there = target.exists();
        // What replaces a private file is private from the beginning.
        let mode = if is_there { 0o600 } else { 0o666 };
        for number in 0..NAMES_MAX {
            let path = folder.join(temporary_name(target, number));
            let mut options = OpenOptions::new();
            match options.write(true).create_new(true).mode(mode).open(&path) {
                Ok(file) => return Ok((Temporary { path: Some(path) }, file)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) if is_there => {
                    let folder = folder.display();
                    let why = format!("the folder '{folder}' takes no temporary file: {e}");
                    return Err(io::Error::new(e.kind(), why));
                }
                Err(e) => return Err(e),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Puts the file, which is whole, in the place of its target, with the target's owner and mode.
    fn put_in_place(mut self, file: &File, target: &Path) -> io::Result<()> {
        let Some(path) = self.path.as_deref() else {
            return Ok(());
        };
        let alike = match fs::metadata(target) {
            Ok(old) => make_alike(file, &old),
            Err(_) => Ok(()),
        };
        match alike.and_then(|()| fs::rename(path, target)) {
            Ok(()) => {
                self.path = None;
                Ok(())
            }
            // A mount point, or a file of another user: the target itself takes the content.
            Err(_) if target.is_file() => copy(path, target),
            Err(e) => Err(e),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Nothing reads a file that is left behind.
            let _ = fs::remove_file(path);
        }
    }
}

/// Gives a file the owner and the mode of another; the owner first, as that changes the mode.
fn make_alike(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut target = OpenOptions::new().write(true).truncate(true).open(to)?;
    io::copy(&mut OpenOptions::new().read(true).open(from)?, &mut target)?;
    target.sync_all()
}

/// Where all symbolic links from `path` lead; `None`: to a descriptor of a process, below /proc.
fn end_of_links(path: &Path) -> io::Result<Option<PathBuf>> {
    if path.as_os_str().is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let is_folder = path.as_os_str().as_bytes().ends_with(b"/");
        if is_folder || path.file_name().is_none() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let folder = folder_of(&path);
        if folder.canonicalize().is_ok_and(|f| f.starts_with("/proc")) {
            return Ok(None);
        }
        match fs::read_link(&path) {
            Ok(to) => path = folder.join(to),
            Err(_) => return Ok(Some(path)),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// `.NAME.PID-NUMBER.part`: hidden, and told apart from those of other processes.
fn temporary_name(target: &Path, number: u32) -> PathBuf {
    let name = target.file_name().unwrap_or_default().as_bytes();
    let mut own = b".".to_vec();
    own.extend(&name[..name.len().min(NAME_MAX)]);
    own.extend(format!(".{}-{number}.part", std::process::id()).bytes());
    PathBuf::from(std::ffi::OsString::from_vec(own))
}
