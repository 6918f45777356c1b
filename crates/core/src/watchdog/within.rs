//! One call judged twice: for a session, and for the session above it. Both have to allow it.

use super::judge::Judged;

impl Judged {
    /// Combines this with another judgement that also has to allow the call: the stricter verdict, and only
    /// grants that both give. The call needs every grant that one of them lacks.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        let mut both = self;
        both.verdict = both.verdict.or_stricter(other.verdict);
        for (places, others) in [(&mut both.outside, other.outside), (&mut both.grants, other.grants)] {
            let new: Vec<_> = others.into_iter().filter(|place| !places.contains(place)).collect();
            places.extend(new);
        }
        both.network = both.network.min(other.network);
        both.writes = both.writes.min(other.writes);
        both
    }
}
