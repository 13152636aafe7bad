//! What makes two requests the same.

use hapax_core::{Fingerprint, Part, RequestParts, Salt, Tenant, TenantKey};

const SALT: Salt = Salt::from_bytes([7; 32]);

fn key(tenant: &str) -> TenantKey {
    SALT.tenant_key(&Tenant::parse(tenant).unwrap())
}

const BASE: RequestParts<'_> = RequestParts {
    method: b"POST",
    path: b"/payments",
    query: b"a=1",
    headers: &[("content-type", b"application/json")],
    body: b"{}",
};

#[track_caller]
fn differs(left: &RequestParts<'_>, right: &RequestParts<'_>, expected: &[Part]) {
    let key = key("acme");
    let difference = key.fingerprint(left).difference(&key.fingerprint(right)).unwrap();
    assert_eq!(difference.parts().collect::<Vec<_>>(), expected);
}

#[test]
fn equal_requests_have_equal_fingerprints() {
    let (one, two) = (key("acme").fingerprint(&BASE), key("acme").fingerprint(&BASE));
    assert_eq!(one, two);
    assert_eq!(one.difference(&two), None);
}

#[test]
fn each_part_that_differs_is_named() {
    let other: [(Part, RequestParts<'_>); 5] = [
        (Part::Method, RequestParts { method: b"PUT", ..BASE }),
        (Part::Path, RequestParts { path: b"/refunds", ..BASE }),
        (Part::Query, RequestParts { query: b"a=2", ..BASE }),
        (Part::Headers, RequestParts { headers: &[], ..BASE }),
        (Part::Body, RequestParts { body: b"[]", ..BASE }),
    ];
    for (part, request) in other {
        differs(&BASE, &request, &[part]);
    }
    differs(&BASE, &RequestParts::default(), &Part::ALL);
    differs(
        &BASE,
        &RequestParts { method: b"PUT", body: b"[]", ..BASE },
        &[Part::Method, Part::Body],
    );
}

#[test]
fn bytes_moved_from_one_part_to_the_next_make_another_request() {
    let one = RequestParts { path: b"/a", query: b"b", ..RequestParts::default() };
    let two = RequestParts { path: b"/ab", query: b"", ..RequestParts::default() };
    differs(&one, &two, &[Part::Path, Part::Query]);
}

#[test]
fn headers_differ_by_name_value_order_and_where_one_ends() {
    let with = |headers| RequestParts { headers, ..RequestParts::default() };
    let base = with(&[("ab", b"cd"), ("e", b"f")]);
    for other in [
        with(&[("abc", b"d"), ("e", b"f")]),
        with(&[("e", b"f"), ("ab", b"cd")]),
        with(&[("ab", b"cde"), ("", b"f")]),
        with(&[("ab", b"cd")]),
        with(&[("aB", b"cd"), ("e", b"f")]),
    ] {
        differs(&base, &other, &[Part::Headers]);
    }
}

#[test]
fn the_same_request_of_another_tenant_or_salt_has_another_fingerprint() {
    let base = key("acme").fingerprint(&BASE);
    assert_ne!(base, key("other").fingerprint(&BASE));
    let other = Salt::from_bytes([8; 32]).tenant_key(&Tenant::parse("acme").unwrap());
    assert_ne!(base, other.fingerprint(&BASE));
}

#[test]
fn a_fingerprint_is_fixed_because_it_is_stored() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let base = key("acme").fingerprint(&BASE);
    assert_eq!(
        hex(base.as_bytes()),
        "80802e23c30b27217936c59301f49bbb1d894d339c70fce325fbf554c1a8beda0ab251ec"
    );
    assert_eq!(Fingerprint::from_bytes(*base.as_bytes()), base);
    assert_eq!(Fingerprint::BYTES, 36);
}

#[test]
fn equality_rests_on_the_first_sixteen_bytes_alone() {
    let base = key("acme").fingerprint(&BASE);
    let change = |at: usize| {
        let mut bytes = *base.as_bytes();
        bytes[at] ^= 1;
        base.difference(&Fingerprint::from_bytes(bytes))
    };
    for at in 0..16 {
        assert_eq!(change(at).unwrap().parts().count(), 0, "byte {at} decides");
    }
    for at in 16..Fingerprint::BYTES {
        assert_eq!(change(at), None, "byte {at} only names");
    }
}

#[test]
fn secrets_are_not_printed() {
    assert_eq!(format!("{SALT:?} {:?}", key("acme")), "Salt(..) TenantKey(..)");
    let shown = format!("{:?}", Fingerprint::from_bytes([0xab; Fingerprint::BYTES]));
    assert_eq!(shown, "Fingerprint(abababab..)");
    assert_eq!(SALT.as_bytes(), &[7; 32]);
}

#[test]
fn parts_are_known_by_their_published_names() {
    let names = Part::ALL.map(Part::as_str);
    assert_eq!(names, ["method", "path", "query", "headers", "body"]);
}
