import CGSSAPI

/// One log-in by SPNEGO (RFC 4178), as its initiator: tokens go back and forth until both sides are content.
///
/// Each step may ask the key distribution center, and take many seconds. One thread at a time may use a context; it need not be the same.
@safe package final class SecurityContext: @unchecked Sendable {  // its owner takes one step after the other
    private let target: PrincipalName
    private let credential: InitiatorCredential
    private let channel: [UInt8]?
    private var handle: gss_ctx_id_t?

    /// - Parameters:
    ///   - service: such as `HTTP`, in the name of the principal `HTTP/host`.
    ///   - channelBindings: of the TLS connection (RFC 5929 §4): `tls-server-end-point:` and the hash. Nil without TLS.
    package init(
        service: String, host: String, _ credential: InitiatorCredential, channelBindings: [UInt8]?
    ) throws(GSSAPIFailure) {
        target = try PrincipalName("\(service)@\(host)", .service)
        self.credential = credential
        channel = channelBindings
    }

    deinit {
        var minor: OM_uint32 = 0
        unsafe gss_delete_sec_context(&minor, &handle, nil)
    }

    /// Makes the next token (RFC 2743 §2.2.1). The server must prove itself too (mutual authentication), and gets no ticket of the user to
    /// use elsewhere (no delegation).
    ///
    /// - Parameter received: the token of the server. Nil at first.
    /// - Returns: what to send, which is empty if nothing is left to say; and whether this side is content.
    package func step(_ received: [UInt8]?) throws(GSSAPIFailure) -> (token: [UInt8], isComplete: Bool) {
        precondition(unsafe (handle == nil) == (received == nil), "only the first step has no token of the server")
        var minor: OM_uint32 = 0
        let made = OwnedBuffer()
        let major = unsafe withBuffer(received ?? []) { received in
            unsafe ObjectIdentifier.spnego.lend { mechanism in
                unsafe withChannel { channel in
                    unsafe gss_init_sec_context(
                        &minor, credential.handle, &handle, target.name, mechanism, OM_uint32(GSS_C_MUTUAL_FLAG), 0,
                        channel, received, nil, made.buffer, nil, nil)
                }
            }
        }
        guard !isError(major) else { throw GSSAPIFailure(.context, major: major, minor: minor) }
        return (made.bytes, major & continueNeeded == 0)
    }

    private func withChannel<Result>(_ body: (gss_channel_bindings_t?) -> Result) -> Result {
        guard let channel else { return body(nil) }
        return unsafe withBuffer(channel) { buffer in
            let none = unsafe gss_buffer_desc(length: 0, value: nil)
            var bindings = unsafe gss_channel_bindings_struct(
                initiator_addrtype: 0, initiator_address: none, acceptor_addrtype: 0, acceptor_address: none,
                application_data: buffer.pointee)
            return unsafe body(&bindings)
        }
    }
}

/// GSS_S_CONTINUE_NEEDED (RFC 2744 §3.9.1). Swift cannot read the macro.
let continueNeeded: OM_uint32 = 1
