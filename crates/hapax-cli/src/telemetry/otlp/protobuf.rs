//! Messages of Protocol Buffers, written field by field.
//!
//! A field is its number and kind, then its value; a message within another stands after its length. What has its
//! usual value is left out, as readers expect.

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct ProtoMessage(Vec<u8>);

/// How a value is written, as the lowest three bits of a field say.
#[derive(Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

impl ProtoMessage {
    /// A text, unless it is empty.
    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    /// Bytes, unless there are none.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.delimited(field, bytes);
        }
    }

    /// A number that is mostly small, unless it is zero.
    pub(super) fn number(&mut self, field: u32, number: u64) {
        if number != 0 {
            self.key(field, WireType::Varint);
            self.varint(number);
        }
    }

    /// A number of which there is one of several kinds, so that zero says something too.
    pub(super) fn signed_of_several(&mut self, field: u32, number: i64) {
        self.key(field, WireType::Varint);
        self.varint(u64::from_ne_bytes(number.to_ne_bytes()));
    }

    /// A number in eight bytes, unless it is zero.
    pub(super) fn fixed(&mut self, field: u32, number: u64) {
        if number != 0 {
            self.key(field, WireType::Fixed64);
            self.0.extend(number.to_le_bytes());
        }
    }

    /// A number in eight bytes of which there is one of several kinds, so that zero says something too.
    pub(super) fn fixed_of_several(&mut self, field: u32, number: u64) {
        self.key(field, WireType::Fixed64);
        self.0.extend(number.to_le_bytes());
    }

    /// Flags in four bytes, unless there are none.
    pub(super) fn flags(&mut self, field: u32, flags: u32) {
        if flags != 0 {
            self.key(field, WireType::Fixed32);
            self.0.extend(flags.to_le_bytes());
        }
    }

    /// A real number, zero included.
    pub(super) fn real(&mut self, field: u32, number: f64) {
        self.key(field, WireType::Fixed64);
        self.0.extend(number.to_le_bytes());
    }

    /// Several numbers in eight bytes each.
    pub(super) fn packed(&mut self, field: u32, numbers: impl Iterator<Item = [u8; 8]>) {
        let packed: Vec<u8> = numbers.flatten().collect();
        self.bytes(field, &packed);
    }

    /// A message within this one, even if it says nothing.
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.delimited(field, &inner.0);
    }

    /// The whole message.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn delimited(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, WireType::Bytes);
        self.varint(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.0.extend_from_slice(bytes);
    }

    fn key(&mut self, field: u32, wire: WireType) {
        self.varint(u64::from(field) << 3 | u64::from(wire as u8));
    }

    /// Seven bits in each byte, the lowest first; all but the last have the highest bit.
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_specification_shows_them() {
        let written = |write: &dyn Fn(&mut ProtoMessage)| {
            let mut message = ProtoMessage::default();
            write(&mut message);
            message.into_bytes()
        };
        // The examples of protobuf.dev/programming-guides/encoding.
        assert_eq!(written(&|m| m.number(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(written(&|m| m.text(2, "testing")), b"\x12\x07testing");
        let inner = |m: &mut ProtoMessage| m.message(3, |m| m.number(1, 150));
        assert_eq!(written(&inner), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert!(written(&|m| m.number(1, 0)).is_empty());
        let mut minus_two = vec![0x08, 0xfe];
        minus_two.extend([0xff; 8]);
        minus_two.push(0x01);
        assert_eq!(written(&|m| m.signed_of_several(1, -2)), minus_two);
        assert_eq!(written(&|m| m.flags(16, 1)), [0x85, 0x01, 1, 0, 0, 0]);
    }
}
