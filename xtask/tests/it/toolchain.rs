use xtask::ci::RustVersion;

#[test]
fn compilers_are_compared_by_what_rust_version_says() {
    let version = |text| RustVersion::parse(text).unwrap();
    assert_eq!(version("1.95"), version("1.95.2"));
    assert_eq!(version("1.95.0-nightly").to_string(), "1.95");
    assert!(version("1.9") < version("1.10.3"));
    for unreadable in ["", "1", "stable", "1.x"] {
        assert_eq!(RustVersion::parse(unreadable), None, "{unreadable:?}");
    }
}
