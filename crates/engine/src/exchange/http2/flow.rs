//! Flow control (RFC 9113 §5.2, §6.9).

use super::Violation;
use super::frame::MAX_31;

/// Initial window of a stream and of the connection (§6.9.2).
pub(crate) const WINDOW_DEFAULT: u32 = 65_535;

/// Bytes that may still be sent. Below 0 if the receiver has made the window smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendWindow(i64);

impl SendWindow {
    pub(crate) fn new(bytes: u32) -> SendWindow {
        SendWindow(i64::from(bytes))
    }

    /// Adds the increment of a WINDOW_UPDATE frame.
    ///
    /// # Errors
    /// An increment of 0, or a window beyond 2³¹ − 1.
    pub(crate) fn update(&mut self, increment: u32) -> Result<(), Violation> {
        match increment {
            0 => Err(Violation::IncrementZero),
            _ if self.grow(i64::from(increment)) => Ok(()),
            _ => Err(Violation::WindowOverflow),
        }
    }

    /// Bytes that may be sent now.
    #[inline]
    pub(crate) fn left(self) -> usize {
        self.0.max(0) as usize
    }

    /// Subtracts sent bytes, at most [`SendWindow::left`].
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// Changes the window by `by`. Whether it stays within 2³¹ − 1.
    #[must_use]
    pub(crate) fn grow(&mut self, by: i64) -> bool {
        self.0 += by;
        self.0 <= i64::from(MAX_31)
    }
}

/// Bytes that the peer may still send. The window is refilled once half of it is used. So updates
/// are few, and the peer waits for none unless half a window is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveWindow {
    left: u32,
    full: u32,
}

impl ReceiveWindow {
    pub(crate) fn new(bytes: u32) -> ReceiveWindow {
        ReceiveWindow { left: bytes, full: bytes }
    }

    /// Subtracts received bytes. Whether they were permitted.
    #[inline]
    #[must_use]
    pub(crate) fn take(&mut self, bytes: u32) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// The increment to announce now, if any.
    #[inline]
    pub(crate) fn due(&mut self) -> Option<u32> {
        if self.left > self.full / 2 {
            return None;
        }
        let increment = self.full - self.left;
        self.left = self.full;
        (increment > 0).then_some(increment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_sent() {
        let mut window = SendWindow::new(10);
        window.take(10);
        assert_eq!(window.left(), 0);
        assert!(window.grow(-5));
        assert_eq!(window.left(), 0, "below 0 (RFC 9113 §6.9.2)");
        assert!(window.grow(6));
        assert_eq!(window.left(), 1);
        assert!(window.grow(i64::from(MAX_31) - 1));
        assert!(!window.grow(1), "beyond 2³¹ − 1");
    }

    #[test]
    fn updates_come_at_half() {
        let mut window = ReceiveWindow::new(10);
        assert!(window.take(4));
        assert_eq!(window.due(), None);
        assert!(window.take(1));
        assert_eq!(window.due(), Some(5));
        assert!(window.take(10));
        assert!(!window.take(1));
        let mut least = ReceiveWindow::new(1);
        assert_eq!(least.due(), None);
        assert!(least.take(1));
        assert_eq!(least.due(), Some(1));
    }
}
