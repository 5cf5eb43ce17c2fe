//! How many files this process may have open: each connection is one.

use crate::failure::{Failure, Result};

/// Files that belong to no arm: standard streams, libraries' own, and what a server's name is looked up with.
const SPARE: usize = 32;

fn limits() -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the struct it is given.
    let read = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    (read == 0).then_some(limit)
}

/// Allows as many open files as this process may have: thousands of connections need them.
pub fn allow_most() {
    if let Some(limit) = limits() {
        let most = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        // SAFETY: the call reads the struct it is given. If it fails, the limit stays as it was.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &most) };
    }
}

/// Refuses an arm that needs `needed` files beside `taken` of other arms if there are not as many.
pub fn check(needed: usize, taken: usize) -> Result<()> {
    let most = limits().map_or(u64::MAX, |limit| limit.rlim_cur);
    room_for(needed, taken, most)
}

fn room_for(needed: usize, taken: usize, most: u64) -> Result<()> {
    let all = needed + taken + SPARE;
    if all as u64 <= most {
        return Ok(());
    }
    let others = if taken > 0 { format!(", {taken} of the other arms") } else { String::new() };
    Err(Failure::new(
        "connect",
        format!(
            "this arm's connections need {needed} open files{others} and {SPARE} more, {all} in all, but this process may open {most}: \
             use fewer connections, or raise the hard limit (`prlimit --nofile={all} --pid $$` as root in the shell that starts it; \
             LimitNOFILE={all} in a systemd unit; --ulimit nofile={all} for a container)"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_without_room_is_refused_with_what_it_needs_and_how_to_get_it() {
        assert!(room_for(10_001, 9_967, 20_000).is_ok());
        let refused = room_for(10_001, 9_968, 20_000).unwrap_err();
        assert_eq!((refused.code.as_str(), refused.lost), ("connect", false));
        for words in
            ["need 10001 open files", "9968 of the other arms", "20001 in all", "may open 20000", "--nofile=20001"]
        {
            assert!(refused.text.contains(words), "{words}: {refused}");
        }
        assert!(!room_for(101, 0, 100).unwrap_err().text.contains("other arms"));
        assert!(room_for(usize::MAX / 2, 0, u64::MAX).is_ok());
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        allow_most();
        let limit = limits().unwrap();
        assert_eq!(limit.rlim_cur, limit.rlim_max);
    }
}
