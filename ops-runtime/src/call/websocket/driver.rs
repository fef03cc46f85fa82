//! Reads and writes the messages of a connection in one task.
//!
//! Reading and writing do not wait for each other, except that a peer that does not read is hardly read. Two peers that
//! both have much to send each take the other for such a peer, and go on as each still reads a little. Queued messages
//! are written together.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::connection::Connection;
use super::socket::{End, Incoming, Outgoing, Socket};
use crate::run::fairness::Turns;

/// How many messages are read before other connections get their turn, if there are few.
const BATCH: usize = 256;

/// The same if there are many connections, and how many messages all of them read in a round.
const SMALL_BATCH: usize = 16;
const ROUND: usize = 2_048;

/// How many bytes are read before other connections get their turn.
const TURN: usize = 256 << 10;

/// For how long a peer is read before other connections get their turn.
const TIME: Duration = Duration::from_micros(500);

/// How many bytes are in flight before they are reported as sent.
const PART: usize = 256 << 10;

/// How long a peer that has reached its limit is not read: its next frames may be those that release memory.
const PAUSE: Duration = Duration::from_secs(5);

/// How often such a peer is looked at: it is woken by what it releases itself, but not by what others release.
const AGAIN: Duration = Duration::from_millis(100);

/// How long a peer that does not read is not read: it may wait for the same of us, and then one of both must go on.
const STALL: Duration = Duration::from_secs(1);

/// By how many bytes the queue may grow while such a peer is read, before it is not read again. What a healthy peer sends
/// then is mostly responses, to which nothing is queued.
const GROWTH: usize = 256 << 10;

/// How often the queue may grow so while such a peer is read, before it is read only when it has read. Counted in times, not
/// in bytes: responses to earlier requests may add many bytes at once.
const GROWTHS: usize = 32;

/// Moves the messages of a connection until it ends; returns why it ended.
pub(super) async fn drive(
    socket: &mut impl Socket,
    connection: &Connection,
    heartbeat: Duration,
    stop: impl Future<Output = ()>,
) -> End {
    let mut driver = Driver {
        socket,
        connection,
        writing: Vec::new().into_iter(),
        spare: Vec::new(),
        unflushed: 0,
        dirty: false,
        heard: Instant::now(),
        blocked: false,
        pause: None,
        stall: None,
        heartbeat,
        beat: Box::pin(tokio::time::sleep(heartbeat)),
    };
    let mut stop = std::pin::pin!(stop);
    let mut stopping = false;
    let mut turns = Turns::of_reader();
    poll_fn(|task| {
        if !stopping && stop.as_mut().poll(task).is_ready() {
            stopping = true;
        }
        match ready!(turns.poll(connection.share.cost(), task, |task| Poll::Ready(driver.poll(task)))) {
            // Everything has been sent.
            Poll::Pending if stopping && driver.connection.has_said_all() => Poll::Ready(End::normal("it was closed")),
            polled => polled,
        }
    })
    .await
}

/// Tells the peer that the connection ends, if it still reads.
pub(super) async fn close(socket: &mut impl Socket, code: u16) {
    let closing = async {
        poll_fn(|task| socket.poll_ready(task)).await?;
        socket.send(Outgoing::Close(code))?;
        poll_fn(|task| socket.poll_flush(task)).await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), closing).await;
}

struct Driver<'a, S> {
    socket: &'a mut S,
    connection: &'a Connection,
    /// Messages that were taken out of the queue and not yet passed to the socket.
    writing: std::vec::IntoIter<String>,
    /// An empty vector for the queue.
    spare: Vec<String>,
    /// Bytes that were passed to the socket and have not been sent yet.
    unflushed: usize,
    dirty: bool,
    /// When the peer last sent something, or was known to read.
    heard: Instant,
    /// True if the socket accepts no more: then the peer makes room by reading.
    blocked: bool,
    /// Since when the peer is not read because it has reached its limit, and when to look again.
    pause: Option<(Instant, Pin<Box<Sleep>>)>,
    /// Of a peer that does not read. Then what it sends does not count as a sign of life, only that it reads does.
    stall: Option<Stall>,
    heartbeat: Duration,
    beat: Pin<Box<Sleep>>,
}

/// How a peer that does not read is read: nothing for a while, then until the queue has grown, and so on, but not for ever.
struct Stall {
    pause: Pin<Box<Sleep>>,
    /// From how many queued bytes on the next pause begins; `None` during a pause.
    most: Option<usize>,
    /// After how many more pauses it is read.
    left: usize,
}

impl Stall {
    fn new() -> Self {
        Self { pause: Box::pin(tokio::time::sleep(STALL)), most: None, left: GROWTHS }
    }

    /// True if the peer is read now, with so many bytes queued for it; if not, the task is woken after the pause, unless it
    /// was the last.
    fn may_read(&mut self, queued: usize, task: &mut Task<'_>) -> bool {
        if self.most.is_some_and(|most| queued >= most) {
            self.pause.as_mut().reset(Instant::now() + STALL);
            self.most = None;
        }
        if self.most.is_none() && self.left > 0 && self.pause.as_mut().poll(task).is_ready() {
            self.left -= 1;
            self.most = Some(queued.saturating_add(GROWTH));
        }
        self.most.is_some()
    }
}

impl<S: Socket> Driver<'_, S> {
    fn poll(&mut self, task: &mut Task<'_>) -> Poll<End> {
        let (mut more, mut stalled) = (false, false);
        let batch = (ROUND / self.connection.company()).clamp(SMALL_BATCH, BATCH);
        let (mut bytes, began) = (0, Instant::now());
        for turn in 1..=batch {
            stalled = !self.may_read(task);
            if stalled {
                break;
            }
            match self.read(task, &mut bytes) {
                Poll::Ready(Some(why)) => return Poll::Ready(why),
                Poll::Ready(None) => more = turn == batch || bytes >= TURN || began.elapsed() >= TIME,
                Poll::Pending => break,
            }
            if more {
                break;
            }
        }
        if let Poll::Ready(why) = self.write(task) {
            return Poll::Ready(why);
        }
        if let Poll::Ready(why) = self.pulse(task) {
            return Poll::Ready(why);
        }
        // Reading goes on as soon as there is room again.
        if more || stalled && self.may_read(task) {
            task.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// True if the peer is read now; if not, the task is woken when that may have changed.
    fn may_read(&mut self, task: &mut Task<'_>) -> bool {
        let (share, outbox) = (&self.connection.share, &self.connection.outbox);
        // A peer that does not read is hardly read: its responses would only pile up.
        if let Some(queued) = outbox.stalled() {
            if !self.stall.get_or_insert_with(Stall::new).may_read(queued, task) {
                share.wake_reader(task.waker());
                return outbox.stalled().is_none();
            }
        } else {
            self.stall = None;
        }
        if !share.is_spent() {
            self.pause = None;
            return true;
        }
        let (since, again) = self.pause.get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(AGAIN))));
        if since.elapsed() >= PAUSE {
            return true;
        }
        while again.as_mut().poll(task).is_ready() {
            again.as_mut().reset(Instant::now() + AGAIN);
        }
        if self.stall.is_none() {
            // We did not read, so the peer was not silent.
            self.heard = Instant::now();
        }
        share.wake_reader(task.waker());
        !share.is_spent()
    }

    /// Reads one message; `Some` if the connection has ended.
    fn read(&mut self, task: &mut Task<'_>, bytes: &mut usize) -> Poll<Option<End>> {
        let message = ready!(self.socket.poll_receive(task));
        if self.stall.is_none() {
            self.heard = Instant::now();
        }
        match &message {
            Some(Ok(Incoming::Heartbeat(bytes))) => self.connection.gauge.pass(*bytes),
            _ => self.connection.gauge.settle(),
        }
        Poll::Ready(match message {
            None => Some(End::normal("the peer closed it")),
            Some(Err(error)) => Some(error),
            Some(Ok(Incoming::Close)) => Some(End::normal("the peer closed it")),
            Some(Ok(Incoming::Heartbeat(_))) => {
                // The response to a ping is written with the next message.
                self.dirty = true;
                None
            }
            Some(Ok(Incoming::Text(text))) => {
                *bytes += text.as_ref().len();
                self.connection.receive(text.as_ref());
                self.connection.is_hopeless().then(End::hopeless)
            }
            Some(Ok(Incoming::Binary(binary))) => {
                *bytes += binary.len();
                match std::str::from_utf8(&binary) {
                    Ok(text) => self.connection.receive(text),
                    Err(error) => self.connection.note_fault("a message that is no text", &error.to_string()),
                }
                self.connection.is_hopeless().then(End::hopeless)
            }
        })
    }

    /// Writes what is queued, as far as the peer accepts it.
    fn write(&mut self, task: &mut Task<'_>) -> Poll<End> {
        loop {
            if self.writing.as_slice().is_empty() {
                self.connection.refill();
                let mut batch = std::mem::take(&mut self.spare);
                self.connection.outbox.take(&mut batch, task.waker());
                if batch.is_empty() {
                    self.spare = batch;
                    break;
                }
                self.writing = batch.into_iter();
            }
            while !self.writing.as_slice().is_empty() {
                // In parts, so that the queue has room as they are sent.
                if self.unflushed >= PART
                    && let Some(end) = ready!(self.flush(task))
                {
                    return Poll::Ready(end);
                }
                match self.socket.poll_ready(task) {
                    Poll::Ready(Ok(())) => self.unblock(),
                    Poll::Ready(Err(error)) => return Poll::Ready(error),
                    Poll::Pending => {
                        self.blocked = true;
                        return Poll::Pending;
                    }
                }
                let Some(text) = self.writing.next() else { break };
                self.unflushed += text.len();
                self.dirty = true;
                if let Err(error) = self.socket.send(Outgoing::Text(text)) {
                    return Poll::Ready(error);
                }
            }
        }
        if self.dirty
            && let Some(end) = ready!(self.flush(task))
        {
            return Poll::Ready(end);
        }
        Poll::Pending
    }

    /// Waits until the socket has sent what it was given; `Some` if the connection has ended.
    fn flush(&mut self, task: &mut Task<'_>) -> Poll<Option<End>> {
        match self.socket.poll_flush(task) {
            Poll::Ready(Ok(())) => self.unblock(),
            Poll::Ready(Err(error)) => return Poll::Ready(Some(error)),
            Poll::Pending => {
                self.blocked = true;
                return Poll::Pending;
            }
        }
        self.dirty = false;
        self.connection.outbox.written(std::mem::take(&mut self.unflushed));
        Poll::Ready(None)
    }

    /// Notes that the socket accepts more. If it did not before, the peer has read, so it is alive, however long its
    /// own frames wait behind what it has to read first.
    fn unblock(&mut self) {
        if std::mem::take(&mut self.blocked) {
            self.heard = Instant::now();
        }
    }

    /// Pings a silent peer, and ends the connection if the silence lasts.
    fn pulse(&mut self, task: &mut Task<'_>) -> Poll<End> {
        while self.beat.as_mut().poll(task).is_ready() {
            let silent = self.heard.elapsed();
            if silent >= self.heartbeat * 3 {
                return Poll::Ready(End { why: "the peer was not heard of for too long".to_owned(), code: 1001 });
            }
            if silent >= self.heartbeat / 2
                && let Poll::Ready(Ok(())) = self.socket.poll_ready(task)
            {
                if let Err(error) = self.socket.send(Outgoing::Ping) {
                    return Poll::Ready(error);
                }
                self.dirty = true;
                if let Poll::Ready(Err(error)) = self.socket.poll_flush(task) {
                    return Poll::Ready(error);
                }
            }
            self.beat.as_mut().reset(Instant::now() + self.heartbeat);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// What is queued for a peer has a limit, though the peer goes on sending, and reads a little.
    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_too_little_is_no_longer_read() {
        const ANSWER: usize = 4 << 10;
        let mut task = Task::from_waker(Waker::noop());
        let (mut stall, begun) = (Stall::new(), 8_usize << 20);
        let mut queued = begun;
        for _ in 0..1_000 {
            while stall.may_read(queued, &mut task) {
                queued += ANSWER;
            }
            tokio::time::advance(STALL * 2).await;
        }
        assert_eq!(queued, begun + GROWTHS * GROWTH);
    }
}
