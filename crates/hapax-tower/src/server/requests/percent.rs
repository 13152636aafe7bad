//! Percent-encoding: a byte as `%` and two hexadecimal digits.

/// The byte that these two digits encode.
pub(crate) fn decoded(high: u8, low: u8) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// The byte of these two digits, encoded in the one spelling there is of it.
pub(crate) fn respelled(high: u8, low: u8) -> [u8; 3] {
    [b'%', high.to_ascii_uppercase(), low.to_ascii_uppercase()]
}
