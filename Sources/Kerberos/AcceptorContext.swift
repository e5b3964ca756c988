import CGSSAPI
import Glibc

/// The keys with which a service checks the tickets of its clients (RFC 2743 §2.1.1). Any thread may use it, several at a time.
@safe package final class AcceptorCredential: @unchecked Sendable {  // the library locks what changes in it
    let handle: gss_cred_id_t?

    /// Reads the keytab. For Kerberos alone: within SPNEGO, no other mechanism is agreed to, whatever is installed.
    ///
    /// - Parameter principal: the one whose tickets are accepted. Nil: all of the file.
    package init(keytab: String, principal: String?) throws(GSSAPIFailure) {
        // SPNEGO takes a file without keys. So Kerberos is asked first, which says what is wrong with it.
        var keys: gss_cred_id_t?
        try unsafe accept(keytab, principal, .kerberos, &keys)
        var minor: OM_uint32 = 0
        unsafe gss_release_cred(&minor, &keys)
        var made: gss_cred_id_t?
        try unsafe accept(keytab, principal, .spnego, &made)
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

/// gss_acquire_cred_from, for an acceptor.
private func accept(
    _ keytab: String, _ principal: String?, _ mechanism: ObjectIdentifier, _ made: inout gss_cred_id_t?
) throws(GSSAPIFailure) {
    let name = try principal.map { text throws(GSSAPIFailure) in NameHolder(try PrincipalName(text, .user)) }
    var minor: OM_uint32 = 0
    let texts = unsafe [strdup("keytab"), strdup("FILE:\(keytab)")]
    defer { unsafe texts.forEach { unsafe free($0) } }
    var element = unsafe gss_key_value_element_desc(key: texts[0], value: texts[1])
    let major = unsafe withUnsafeMutablePointer(to: &element) { element in
        var set = unsafe gss_key_value_set_desc(count: 1, elements: element)
        return unsafe withUnsafePointer(to: &set) { set in
            unsafe mechanism.lendSet {
                unsafe gss_acquire_cred_from(
                    &minor, name?.name.name, OM_uint32.max, $0, CInt(GSS_C_ACCEPT), set, &made, nil, nil)
            }
        }
    }
    guard !isError(major) else { throw GSSAPIFailure(.credential, major: major, minor: minor) }
}

/// One log-in by SPNEGO (RFC 4178), as its acceptor. The library keeps a replay cache: a token is accepted once.
///
/// A step reads the keytab and writes the replay cache, so it belongs on a thread that may block. One thread at a time may use a context.
@safe package final class AcceptorContext: @unchecked Sendable {  // its owner takes one step after the other
    private let credential: AcceptorCredential
    private var handle: gss_ctx_id_t?

    /// Who has logged in.
    package struct Client: Equatable, Sendable {
        /// The principal, with its realm.
        package let principal: String
        /// Seconds until the ticket expires. Nil if it does not.
        package let lifetime: Int?
    }

    package init(_ credential: AcceptorCredential) { self.credential = credential }

    deinit {
        var minor: OM_uint32 = 0
        unsafe gss_delete_sec_context(&minor, &handle, nil)
    }

    /// Judges a token of the client (RFC 2743 §2.2.2).
    ///
    /// - Returns: what to send, which may be empty; and the client, or nil if it has to send another token.
    package func step(_ received: [UInt8]) throws(GSSAPIFailure) -> (token: [UInt8], client: Client?) {
        var minor: OM_uint32 = 0
        var name: gss_name_t?
        var seconds: OM_uint32 = 0
        let made = OwnedBuffer()
        let major = unsafe withBuffer(received) { received in
            unsafe gss_accept_sec_context(
                &minor, &handle, credential.handle, received, nil, &name, nil, made.buffer, nil, &seconds, nil)
        }
        var ignored: OM_uint32 = 0
        defer { unsafe gss_release_name(&ignored, &name) }
        guard !isError(major) else { throw GSSAPIFailure(.context, major: major, minor: minor) }
        guard major & continueNeeded == 0 else { return (made.bytes, nil) }
        let text = OwnedBuffer()
        let status = unsafe gss_display_name(&minor, name, text.buffer, nil)
        guard !isError(status), let principal = String(validating: text.bytes, as: UTF8.self) else {
            throw GSSAPIFailure(.name, major: status, minor: minor)
        }
        return (made.bytes, Client(principal: principal, lifetime: seconds == OM_uint32.max ? nil : Int(seconds)))
    }
}
