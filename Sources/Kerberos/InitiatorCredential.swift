import CGSSAPI
import Glibc
import Synchronization

/// What contexts are made with: a ticket of Kerberos, and the means to get others with it (RFC 2743 §2.1.1).
///
/// Making one asks the key distribution center, and may take many seconds. Any thread may use it, several at a time.
@safe package final class InitiatorCredential: @unchecked Sendable {  // the library locks what changes in it
    /// Where the first ticket comes from. Principals without a realm are of the default realm.
    package enum Source: Equatable, Sendable {
        /// Of the user who runs the process: what `kinit` has left there. `principal`: the one that it must be.
        case defaultCache(principal: String?)
        /// Asked for with a key from this file. Nil: its first principal.
        case keytab(file: String, principal: String?)
        case password([UInt8], principal: String)
    }

    /// What the library calls a credential.
    let handle: gss_cred_id_t?
    /// Seconds until the ticket expires. Nil if it does not, or if the library will get others by itself.
    package let lifetime: Int?
    private let ownCache: TicketCache

    package init(_ source: Source) throws(GSSAPIFailure) {
        let cache = TicketCache()
        ownCache = cache
        // SPNEGO hides why there is no ticket. So Kerberos is asked first, which says it.
        var ticket: gss_cred_id_t?
        try unsafe acquire(source, cache, .kerberos, &ticket)
        lifetime = try unsafe judge(&ticket, of: source)
        var made: gss_cred_id_t?
        try unsafe acquire(source, cache, .spnego, &made)
        // Without this the library would offer every mechanism that is installed, with the same password.
        var minor: OM_uint32 = 0
        let major = unsafe ObjectIdentifier.kerberos.lendSet { unsafe gss_set_neg_mechs(&minor, made, $0) }
        unsafe handle = unsafe made
        guard !isError(major) else { throw GSSAPIFailure(.credential, major: major, minor: minor) }
    }

    deinit {
        var minor: OM_uint32 = 0
        var handle = unsafe handle
        unsafe gss_release_cred(&minor, &handle)
    }
}

private func acquire(
    _ source: InitiatorCredential.Source, _ cache: TicketCache, _ mechanism: ObjectIdentifier,
    _ made: inout gss_cred_id_t?
) throws(GSSAPIFailure) {
    switch source {
    case .defaultCache(let principal): try unsafe acquire(principal, [], mechanism, &made)
    case .keytab(let file, let principal):
        try unsafe acquire(
            principal, [("client_keytab", "FILE:\(file)"), ("ccache", cache.name)], mechanism, &made)
    case .password(let password, let principal):
        try unsafe acquire(principal, password: password, mechanism, &made)
    }
}

/// Gets the ticket, which the library otherwise does at the first token, and releases the credential.
///
/// - Returns: its lifetime in seconds. Nil if the library gets another one by itself, by a key, or reads a cache again.
private func judge(
    _ ticket: inout gss_cred_id_t?, of source: InitiatorCredential.Source
) throws(GSSAPIFailure) -> Int? {
    var minor: OM_uint32 = 0
    var seconds: OM_uint32 = 0
    let major = unsafe gss_inquire_cred(&minor, ticket, nil, &seconds, nil, nil)
    // Releasing has a status of its own.
    var ignored: OM_uint32 = 0
    defer { unsafe gss_release_cred(&ignored, &ticket) }
    guard !isError(major) else { throw GSSAPIFailure(.credential, major: major, minor: minor) }
    guard case .password = source, seconds != OM_uint32.max else { return nil }
    return Int(seconds)
}

/// gss_acquire_cred_from.
private func acquire(
    _ principal: String?, _ store: [(key: String, value: String)], _ mechanism: ObjectIdentifier,
    _ made: inout gss_cred_id_t?
) throws(GSSAPIFailure) {
    let name = try principal.map { text throws(GSSAPIFailure) in NameHolder(try PrincipalName(text, .user)) }
    var minor: OM_uint32 = 0
    let texts = unsafe store.map { unsafe [strdup($0.key), strdup($0.value)] }
    defer { unsafe texts.forEach { unsafe $0.forEach { unsafe free($0) } } }
    var elements = unsafe texts.map { unsafe gss_key_value_element_desc(key: $0[0], value: $0[1]) }
    let major = unsafe elements.withUnsafeMutableBufferPointer { elements in
        var set = unsafe gss_key_value_set_desc(count: OM_uint32(elements.count), elements: elements.baseAddress)
        // The library takes an empty set for an error.
        return unsafe withUnsafePointer(to: &set) { set in
            unsafe mechanism.lendSet {
                unsafe gss_acquire_cred_from(
                    &minor, name?.name.name, OM_uint32.max, $0, CInt(GSS_C_INITIATE), store.isEmpty ? nil : set,
                    &made, nil, nil)
            }
        }
    }
    guard !isError(major) else { throw GSSAPIFailure(.credential, major: major, minor: minor) }
}

private func acquire(
    _ principal: String, password: [UInt8], _ mechanism: ObjectIdentifier, _ made: inout gss_cred_id_t?
) throws(GSSAPIFailure) {
    let name = try PrincipalName(principal, .user)
    var minor: OM_uint32 = 0
    let major = unsafe withBuffer(password) { password in
        unsafe mechanism.lendSet {
            unsafe gss_acquire_cred_with_password(
                &minor, name.name, password, OM_uint32.max, $0, CInt(GSS_C_INITIATE), &made, nil, nil)
        }
    }
    guard !isError(major) else { throw GSSAPIFailure(.credential, major: major, minor: minor) }
}

/// An optional name: what cannot be copied has no `map`.
final class NameHolder {
    let name: PrincipalName
    init(_ name: consuming PrincipalName) { self.name = name }
}

/// A cache for tickets in memory, for one credential. Nobody else finds it, and it ends with its owner.
private final class TicketCache: Sendable {
    private static let count = Atomic<UInt64>(0)
    let name: String

    init() { name = "MEMORY:larder-\(TicketCache.count.add(1, ordering: .relaxed).newValue)" }

    deinit {
        var context: krb5_context?
        guard unsafe krb5_init_context(&context) == 0 else { return }
        defer { unsafe krb5_free_context(context) }
        var cache: krb5_ccache?
        // Destroying closes it as well.
        if unsafe krb5_cc_resolve(context, name, &cache) == 0 { unsafe krb5_cc_destroy(context, cache) }
    }
}
