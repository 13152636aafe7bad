//! Brings the members of spelled objects into order in one pass: every byte is copied once, however
//! deeply the objects are nested.

use std::ops::Range;

/// Which objects of a text have their members elsewhere than they belong.
#[derive(Debug)]
pub(crate) struct MemberOrder {
    /// Objects whose members change places, and objects around such, in the order they begin.
    objects: Vec<Object>,
    /// The members of the objects that are not in order, object by object, as they belong.
    members: Vec<Stretch>,
}

#[derive(Debug)]
struct Object {
    /// From its `{` to behind its `}`.
    at: Range<usize>,
    /// The first object that begins after this one has ended.
    next: usize,
    /// Where its members are noted; nowhere if they are in order as they stand.
    members: Range<usize>,
}

/// A part of the text, and the first object that begins in it or later.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    at: Range<usize>,
    first_object: usize,
}

/// How far a text was when something of it began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    at: usize,
    objects: usize,
    members: usize,
}

impl Mark {
    /// Where in the text that is.
    pub(crate) fn at(self) -> usize {
        self.at
    }
}

impl MemberOrder {
    /// Nothing is out of order yet. There is room for so many members at first.
    pub(crate) fn with_room_for(members: usize) -> Self {
        Self { objects: Vec::with_capacity(members / 2), members: Vec::with_capacity(members) }
    }

    /// Where something begins.
    pub(crate) fn mark(&self, at: usize) -> Mark {
        Mark { at, objects: self.objects.len(), members: self.members.len() }
    }

    /// What began at the mark and ends here.
    pub(crate) fn stretch(mark: Mark, end: usize) -> Stretch {
        Stretch { at: mark.at..end, first_object: mark.objects }
    }

    /// What began at the mark is no part of the text.
    pub(crate) fn forget(&mut self, mark: Mark) {
        self.objects.truncate(mark.objects);
        self.members.truncate(mark.members);
    }

    /// An object begins with the byte at the mark.
    pub(crate) fn open(&mut self, mark: Mark) {
        self.objects.push(Object { at: mark.at..mark.at, next: 0, members: 0..0 });
    }

    /// The object that was opened at the mark ends before `end`. Its members are in order.
    pub(crate) fn close_in_order(&mut self, mark: Mark, end: usize) {
        if self.objects.len() == mark.objects + 1 {
            // Nothing in it moves either.
            self.objects.pop();
        } else {
            self.close(mark, end, std::iter::empty());
        }
    }

    /// The object that was opened at the mark ends before `end`. These are its members, in order.
    pub(crate) fn close(&mut self, mark: Mark, end: usize, members: impl Iterator<Item = Stretch>) {
        let first = self.members.len();
        self.members.extend(members);
        let next = self.objects.len();
        if let Some(object) = self.objects.get_mut(mark.objects) {
            *object = Object { at: mark.at..end, next, members: first..self.members.len() };
        }
    }

    /// The text with all members where they belong.
    pub(crate) fn apply(&self, text: Vec<u8>) -> Vec<u8> {
        if self.objects.is_empty() {
            return text;
        }
        let mut ordered = Vec::with_capacity(text.len());
        self.write(&text, &Stretch { at: 0..text.len(), first_object: 0 }, &mut ordered);
        ordered
    }

    /// Goes as deep as the objects are nested.
    fn write(&self, text: &[u8], stretch: &Stretch, ordered: &mut Vec<u8>) {
        let (mut at, mut next) = (stretch.at.start, stretch.first_object);
        while let Some(object) = self.objects.get(next).filter(|o| o.at.start < stretch.at.end) {
            if object.members.is_empty() {
                next += 1;
                continue;
            }
            ordered.extend_from_slice(&text[at..=object.at.start]);
            for (nth, member) in self.members[object.members.clone()].iter().enumerate() {
                if nth > 0 {
                    ordered.push(b',');
                }
                self.write(text, member, ordered);
            }
            (at, next) = (object.at.end - 1, object.next);
        }
        ordered.extend_from_slice(&text[at..stretch.at.end]);
    }
}
