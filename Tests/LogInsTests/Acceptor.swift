import CGSSAPI

@testable import Kerberos

/// The service's side of Negotiate, with the keytab that `KRB5_KTNAME` names.
@safe final class Acceptor {
    private var context: gss_ctx_id_t?
    private let channelBindings: [UInt8]?

    /// - Parameter channelBindings: nil: those of the initiator do not matter.
    init(channelBindings: [UInt8]? = nil) { self.channelBindings = channelBindings }

    deinit {
        var minor: OM_uint32 = 0
        unsafe gss_delete_sec_context(&minor, &context, nil)
    }

    /// The answer to a token. Nil if it is not accepted.
    func accept(_ token: [UInt8]) -> [UInt8]? {
        var minor: OM_uint32 = 0
        let answer = OwnedBuffer()
        let major = unsafe withBuffer(token) { token in
            unsafe withBuffer(channelBindings ?? []) { channel in
                let none = unsafe gss_buffer_desc(length: 0, value: nil)
                var bindings = unsafe gss_channel_bindings_struct(
                    initiator_addrtype: 0, initiator_address: none, acceptor_addrtype: 0, acceptor_address: none,
                    application_data: channel.pointee)
                return unsafe withUnsafeMutablePointer(to: &bindings) { bindings in
                    unsafe gss_accept_sec_context(
                        &minor, &context, nil, token, channelBindings == nil ? nil : bindings, nil, nil, answer.buffer,
                        nil, nil, nil)
                }
            }
        }
        return isError(major) ? nil : answer.bytes
    }
}
