//! Every path of a link up to a certain length: no request is lost, handled twice or handled out of order.

use super::*;

type Links = LinkTable<&'static str, u32, u32>;

fn id() -> SessionId {
    SessionId::new("ses_1")
}

fn open(links: &mut Links) -> OpeningToken {
    match links.submit(&id(), 0) {
        Submitted::Unlinked(vacant, _) => vacant.open("link"),
        other => panic!("{other:?}"),
    }
}

fn now(links: &mut Links) -> OpenLinkGuard<'_, &'static str, u32, u32> {
    match links.submit(&id(), 0) {
        Submitted::Now(open, _) => open,
        other => panic!("{other:?}"),
    }
}

fn waits(links: &mut Links, request: u32) {
    assert!(matches!(links.submit(&id(), request), Submitted::Waits));
}

#[test]
fn what_is_asked_while_a_session_opens_is_done_once_it_is_open() {
    let mut links = Links::default();
    let token = open(&mut links);
    waits(&mut links, 1);
    waits(&mut links, 2);
    assert_eq!(links.opened(token, 7), Some((&"link", vec![1, 2])));
    assert_eq!(*now(&mut links).session(), 7);
}

#[test]
fn a_refused_opening_leaves_what_was_before() {
    let mut links = Links::default();
    let token = open(&mut links);
    waits(&mut links, 1);
    assert_eq!(links.refuse_opening(token), Some(AfterRefusal::Unlinked(vec![1])));
    assert!(!links.contains(&id()));

    let token = open(&mut links);
    assert!(links.opened(token, 7).is_some());
    let token = now(&mut links).open_again();
    waits(&mut links, 2);
    assert_eq!(links.refuse_opening(token), Some(AfterRefusal::Open(vec![2])));
    assert_eq!(*now(&mut links).session(), 7);
}

#[test]
fn a_close_ends_the_link_unless_it_is_refused() {
    let mut links = Links::default();
    links.insert(id(), "link", 7);
    let token = now(&mut links).close();
    waits(&mut links, 1);
    assert_eq!(links.refuse_closing(token), Some(AfterRefusal::Open(vec![1])));
    let token = now(&mut links).close();
    waits(&mut links, 2);
    assert_eq!(links.closed(token), Some(vec![2]));
    assert!(!links.contains(&id()));
}

#[test]
fn a_token_that_outlived_its_link_changes_nothing() {
    for reborn in [false, true] {
        let mut links = Links::default();
        let stale: [OpeningToken; 3] = std::array::from_fn(|_| {
            let token = open(&mut links);
            waits(&mut links, 1);
            assert_eq!(links.remove(&id()), Some(("link", vec![1])));
            token
        });
        links.insert(id(), "link", 3);
        let stale_close = now(&mut links).close();
        assert!(links.remove(&id()).is_some());
        let current = reborn.then(|| open(&mut links));
        let [first, second, third] = stale;
        assert_eq!(links.opened(first, 8), None);
        assert_eq!(links.refuse_opening(second), None);
        assert_eq!(links.fail_opening(third), None);
        assert_eq!(links.closed(stale_close), None);
        assert_eq!(links.contains(&id()), reborn);
        if let Some(current) = current {
            assert!(links.opened(current, 9).is_some());
            assert_eq!(*now(&mut links).session(), 9);
        }
    }
}

/// One walk: requests get rising numbers, and each must come out once, in order.
#[derive(Default)]
struct Walk {
    links: Links,
    openings: Vec<OpeningToken>,
    closings: Vec<ClosingToken>,
    asked: u32,
    out: Vec<u32>,
}

impl Walk {
    fn step(&mut self, action: u32) {
        match action {
            0..=2 => self.ask(action),
            3 => {
                let opened = self.openings.pop().and_then(|token| self.links.opened(token, 5));
                let waited = opened.map(|(_, waited)| waited).unwrap_or_default();
                self.again(waited);
            }
            4 => match self.openings.pop().and_then(|token| self.links.refuse_opening(token)) {
                Some(AfterRefusal::Open(waited)) => self.again(waited),
                Some(AfterRefusal::Unlinked(waited)) => self.out.extend(waited),
                None => {}
            },
            5 => {
                let waited = self.closings.pop().and_then(|token| self.links.closed(token));
                self.out.extend(waited.into_iter().flatten());
            }
            _ => self.out.extend(self.links.remove(&id()).into_iter().flat_map(|(_, waited)| waited)),
        }
    }

    /// 0 only asks, 1 also opens (again) and 2 closes, if the state allows it.
    fn ask(&mut self, action: u32) {
        self.asked += 1;
        match self.links.submit(&id(), self.asked) {
            Submitted::Waits => {}
            Submitted::Now(open, request) => {
                self.out.push(request);
                match action {
                    1 => self.openings.push(open.open_again()),
                    2 => self.closings.push(open.close()),
                    _ => {}
                }
            }
            Submitted::Unlinked(vacant, request) => {
                self.out.push(request);
                if action == 1 {
                    self.openings.push(vacant.open("link"));
                }
            }
        }
    }

    fn again(&mut self, waited: Vec<u32>) {
        for request in waited {
            match self.links.submit(&id(), request) {
                Submitted::Now(_, request) | Submitted::Unlinked(_, request) => self.out.push(request),
                Submitted::Waits => panic!("the session is open"),
            }
        }
    }
}

#[test]
fn on_every_walk_each_request_comes_out_once_and_in_order() {
    const ACTIONS: u32 = 7;
    const STEPS: u32 = 6;
    for walk in 0..ACTIONS.pow(STEPS) {
        let mut state = Walk::default();
        let mut rest = walk;
        for _ in 0..STEPS {
            state.step(rest % ACTIONS);
            rest /= ACTIONS;
        }
        state.step(6);
        let expected: Vec<u32> = (1..=state.asked).collect();
        assert_eq!(state.out, expected, "walk {walk}");
    }
}

#[test]
fn what_waits_when_the_client_leaves_is_still_done() {
    let mut links = Links::default();
    let token = open(&mut links);
    waits(&mut links, 1);
    links.insert(SessionId::new("ses_2"), "other", 8);
    links.let_go();
    assert!(!links.contains(&SessionId::new("ses_2")));
    assert_eq!(links.opened(token, 7), Some((&"link", vec![1])));
    links.let_go();
    assert!(!links.contains(&id()));
}
