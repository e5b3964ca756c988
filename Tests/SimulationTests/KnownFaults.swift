/// What the simulation found and is not mended yet: the driver of the model works around it, or the oracle looks away.
/// With `true` turned into `false` the simulation fails again; once the fault is mended, its line and what asks for it go.
enum KnownFaults {
    /// `reuse` serves what a 304 or a HEAD said `no-store` or `private` of: the driver takes it out of the store.
    static let updateToUnshared = true
    /// `only-if-cached` and `cache-only` do not hold for a GET that goes past the store (`If-Match`, `no-read`).
    static let storeOnlyGoesPast = true
    /// `continues` takes a 206 without `Content-Encoding` for a part of stored content that has one: the driver does not.
    static let partWithoutCoding = true
}
