//! Reading bodies: as a stream, as bytes, into a file.

use std::fmt;
use std::fs::Permissions;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Body, Content};
use crate::model::lock::lock;
use crate::model::random;
use crate::{BoxStream, CallError};

/// How much of a file is read at a time.
const CHUNK: usize = 64 * 1024;

/// A stream for its first reader.
#[derive(Clone)]
pub(crate) struct Shared {
    stream: Arc<Mutex<Option<BoxStream<'static, io::Result<Bytes>>>>>,
    length: Option<u64>,
}

impl Shared {
    pub(super) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.stream, &other.stream)
    }

    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    fn take(&self) -> io::Result<BoxStream<'static, io::Result<Bytes>>> {
        let stream = lock(&self.stream).take();
        stream.ok_or_else(|| io::Error::other("the stream of the body was read already"))
    }
}

/// The bytes of a body, piece by piece.
#[must_use = "streams do nothing until they are polled"]
pub struct BodyStream(BoxStream<'static, io::Result<Bytes>>);

impl Stream for BodyStream {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl fmt::Debug for BodyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyStream").finish_non_exhaustive()
    }
}

impl Body {
    /// A body from a stream, which is polled only when the body is read or sent.
    ///
    /// ```
    /// use futures_util::stream;
    /// use ops_runtime::Body;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
    /// let body = Body::stream(stream::iter([Ok("he".into()), Ok("llo".into())])).with_length(5);
    /// assert_eq!(body.bytes(1024).await?, "hello");
    /// # Ok(()) }
    /// ```
    pub fn stream(stream: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        let stream: BoxStream<'static, _> = Box::pin(stream);
        let content = Content::Stream(Shared { stream: Arc::new(Mutex::new(Some(stream))), length: None });
        Self { content, ..Self::default() }
    }

    /// Sets how many bytes a stream will give, for receivers that need it; no effect on other bodies. To send one that gives
    /// another number is an error.
    #[must_use]
    pub fn with_length(mut self, bytes: u64) -> Self {
        if let Content::Stream(stream) = &mut self.content {
            stream.length = Some(bytes);
        }
        self
    }

    /// How many bytes the body has, if known.
    ///
    /// # Errors
    /// If it is a file whose size can't be told.
    pub async fn length(&self) -> io::Result<Option<u64>> {
        match &self.content {
            Content::Bytes(bytes) => Ok(Some(bytes.len() as u64)),
            Content::Text(text) => Ok(Some(text.len() as u64)),
            Content::File(path) => {
                let own = path.clone();
                let length = tokio::task::spawn_blocking(move || length_of_file(&own)).await;
                length.map_err(io::Error::other).flatten().map_err(|error| of_file(path, &error))
            }
            Content::Stream(stream) => Ok(stream.length),
        }
    }

    /// How many bytes the body has, if that can be told at once: that of a file is looked up, and an empty one is opened, too.
    pub(crate) fn known_length(&self) -> Option<u64> {
        match &self.content {
            Content::Bytes(bytes) => Some(bytes.len() as u64),
            Content::Text(text) => Some(text.len() as u64),
            Content::File(path) => length_of_file(path).ok().flatten(),
            Content::Stream(stream) => stream.length,
        }
    }

    /// Keeps a value until a stream has been read or is dropped; that of another body is dropped at once.
    #[cfg(feature = "gateway")]
    pub(crate) fn hold_until_read(&self, held: impl Send + 'static) {
        let Content::Stream(shared) = &self.content else { return };
        let mut stream = lock(&shared.stream);
        if let Some(pieces) = stream.take() {
            let mut held = Some(held);
            let end = stream::poll_fn(move |_| {
                drop(held.take());
                Poll::Ready(None)
            });
            *stream = Some(Box::pin(pieces.chain(end)));
        }
    }

    /// True if the body is a stream, which can be read once.
    pub fn is_stream(&self) -> bool {
        matches!(self.content, Content::Stream(_))
    }

    /// The bytes without a copy, if they are in memory.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only endpoints that stream ask for them"))]
    pub(crate) fn into_memory(self) -> Result<Bytes, Self> {
        match self.content {
            Content::Bytes(bytes) => Ok(bytes),
            Content::Text(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
            _ => Err(self),
        }
    }

    /// The bytes, piece by piece.
    ///
    /// The first item is an error if the file can't be opened, or if the stream was read already.
    pub fn into_stream(self) -> BodyStream {
        BodyStream(match self.content {
            Content::Bytes(bytes) => stream::iter((!bytes.is_empty()).then_some(Ok(bytes))).boxed(),
            Content::Text(text) => stream::iter([Ok(Bytes::copy_from_slice(text.as_bytes()))]).boxed(),
            Content::File(path) => {
                stream::once(open(path.clone())).flat_map(move |file| pieces(file, path.clone())).boxed()
            }
            Content::Stream(stream) => stream.take().unwrap_or_else(|error| stream::iter([Err(error)]).boxed()),
        })
    }

    /// All bytes, if they are no more than the limit.
    ///
    /// # Errors
    /// If there are more, or if the file or the stream can't be read.
    pub async fn bytes(self, limit: usize) -> io::Result<Bytes> {
        let too_large =
            || io::Error::new(io::ErrorKind::FileTooLarge, format!("the body is larger than {limit} bytes"));
        if let Content::Bytes(bytes) = self.content {
            return if bytes.len() > limit { Err(too_large()) } else { Ok(bytes) };
        }
        let mut stream = self.into_stream();
        let mut all = BytesMut::new();
        while let Some(piece) = stream.next().await {
            let piece = piece?;
            if all.len().saturating_add(piece.len()) > limit {
                return Err(too_large());
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    /// Writes all bytes into a file, which is created or overwritten, and returns how many there were.
    ///
    /// The bytes are written to another file beside it, which takes its place at the end. So a file that is there stays as it
    /// is until all bytes have arrived. It keeps its permissions, but belongs to who saves it, and other names of the file that
    /// was there (hard links) keep the old bytes. What is no file, such as a pipe or a link to nothing, is written to directly.
    ///
    /// # Errors
    /// If the body can't be read, the file can't be written, or the body is that file itself. The error names the file. That of
    /// a body that was received has a [`CallError`] in it: `CallError::from(error)` is that error, with its operation.
    pub async fn save(self, path: impl AsRef<Path>) -> io::Result<u64> {
        let path = path.as_ref();
        if let Content::File(source) = &self.content
            && is_same(source, path).await
        {
            let message = format!("the file `{}` is the body itself: save it to another file", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.write(path).await.map_err(|error| unsaved(path, error))
    }

    async fn write(self, path: &Path) -> io::Result<u64> {
        // The file that a link leads to is replaced, and not the link.
        let found = tokio::fs::canonicalize(path).await;
        // Where it leads to nothing, the file is made there.
        let leads_to_nothing =
            found.is_err() && tokio::fs::symlink_metadata(path).await.is_ok_and(|there| there.is_symlink());
        let path = found.unwrap_or_else(|_| path.to_owned());
        let there = tokio::fs::metadata(&path).await.ok();
        if leads_to_nothing || there.as_ref().is_some_and(|there| !there.is_file()) {
            return copy(self.into_stream(), File::create(path)).await;
        }
        if there.is_some() {
            // A file that must not be written must not be replaced either.
            File::options().write(true).open(&path).await?;
        }
        let beside = Beside::of(&path);
        let permissions = there.map(|there| there.permissions());
        let written = copy(self.into_stream(), async { beside.create(permissions) }).await?;
        tokio::fs::rename(&beside.0, &path).await?;
        Ok(written)
    }
}

/// Writes a stream into a file, which is opened only then, and returns how many bytes there were.
async fn copy(mut stream: BodyStream, opened: impl Future<Output = io::Result<File>>) -> io::Result<u64> {
    // Without its first bytes, nothing is created.
    let mut next = stream.next().await.transpose()?;
    let mut file = opened.await?;
    let mut written = 0;
    while let Some(piece) = next {
        file.write_all(&piece).await?;
        written += piece.len() as u64;
        next = stream.next().await.transpose()?;
    }
    file.flush().await?;
    Ok(written)
}

/// A new file beside another. It is removed when this is dropped, unless it has taken the place of the other.
struct Beside(PathBuf);

impl Beside {
    fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A name has at most 255 bytes on most systems.
        let name: String = name.chars().take(40).collect();
        Self(path.with_file_name(format!(".{name}.{}", random::key())))
    }

    /// Creates the file, with these permissions from the start.
    ///
    /// It is done at once. On another thread, the file would be created even after the task was cancelled, and stay.
    fn create(&self, permissions: Option<Permissions>) -> io::Result<File> {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;

            // Until it has those of the other file, nobody else may open it.
            options.mode(if permissions.is_some() { 0o600 } else { 0o666 });
        }
        let file = options.open(&self.0)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        Ok(File::from_std(file))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self { content: Content::Bytes(bytes), ..Self::default() }
    }
}

/// An error that names the file.
fn of_file(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the file `{}`: {error}", path.display()))
}

/// The error of a body that could not be saved, which names the file. A `CallError` stays one.
fn unsaved(path: &Path, error: io::Error) -> io::Error {
    match error.downcast::<CallError>() {
        Ok(own) => {
            let message = format!("the file `{}` was not saved: {}", path.display(), own.message());
            io::Error::other(own.with_message(message))
        }
        Err(error) => io::Error::new(error.kind(), format!("the file `{}` was not saved: {error}", path.display())),
    }
}

/// True if two paths lead to one file.
async fn is_same(a: &Path, b: &Path) -> bool {
    let (a, b) = (tokio::fs::canonicalize(a).await, tokio::fs::canonicalize(b).await);
    matches!((a, b), (Ok(a), Ok(b)) if a == b)
}

async fn open(path: Arc<Path>) -> io::Result<File> {
    File::open(&path).await.map_err(|error| of_file(&path, &error))
}

/// How many bytes a file has, if that is known before it is read.
///
/// A pipe or a device always has a size of 0, and so has a file below `/proc`. So a file of that size need not be empty.
fn length_of_file(path: &Path) -> io::Result<Option<u64>> {
    let data = std::fs::metadata(path)?;
    if data.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let is_known = data.is_file() && (data.len() > 0 || is_empty(path)?);
    Ok(is_known.then_some(data.len()))
}

/// True if a file whose size is 0 has no first byte either. Files of the kernel are not read for that: some give each byte
/// once, and some give none until something happens.
fn is_empty(path: &Path) -> io::Result<bool> {
    let path = std::fs::canonicalize(path)?;
    let is_of_kernel = ["/proc", "/sys"].iter().any(|folder| path.starts_with(folder));
    Ok(!is_of_kernel && std::fs::File::open(path)?.read(&mut [0])? == 0)
}

fn pieces(file: io::Result<File>, path: Arc<Path>) -> BoxStream<'static, io::Result<Bytes>> {
    let file = match file {
        Ok(file) => file,
        Err(error) => return stream::iter([Err(error)]).boxed(),
    };
    stream::try_unfold((file, path), |(mut file, path)| async move {
        let mut piece = BytesMut::with_capacity(CHUNK);
        let read = file.read_buf(&mut piece).await.map_err(|error| of_file(&path, &error))?;
        Ok((read > 0).then(|| (piece.freeze(), (file, path))))
    })
    .boxed()
}
