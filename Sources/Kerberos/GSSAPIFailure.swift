import CGSSAPI

/// Why the GSS-API has no token (RFC 2743), in the words of the library.
package struct GSSAPIFailure: Error, Equatable, Sendable {
    package enum Step: String, Sendable {
        /// A principal or a service has no valid name.
        case name = "reading a name"
        case credential = "getting a ticket"
        case context = "making a token"
    }
    package let step: Step
    /// Whether the key distribution center has judged the credentials, and refuses them. Repeating that may lock an account.
    package let isRefusal: Bool
    /// What the library says, in one line.
    package let text: String

    init(_ step: Step, major: OM_uint32, minor: OM_uint32) {
        self.step = step
        isRefusal = refusals.contains(Int32(bitPattern: minor))
        let texts = [
            statusText(major, CInt(GSS_C_GSS_CODE)), minor == 0 ? "" : statusText(minor, CInt(GSS_C_MECH_CODE)),
        ]
        text = texts.filter { !$0.isEmpty }.joined(separator: ": ")
    }

    init(_ step: Step, _ text: String) {
        self.step = step
        isRefusal = false
        self.text = text
    }
}

extension GSSAPIFailure: CustomStringConvertible {
    package var description: String { "\(step.rawValue) failed: \(text)" }
}

/// Errors of Kerberos that are about the user or the key (RFC 4120 §7.5.9), as MIT numbers them: the base of `krb5.h` and the number of the RFC.
private let refusals: Set<Int32> = [
    KRB5KDC_ERR_NAME_EXP, KRB5KDC_ERR_C_PRINCIPAL_UNKNOWN, KRB5KDC_ERR_CLIENT_REVOKED, KRB5KDC_ERR_KEY_EXP,
    KRB5KDC_ERR_PREAUTH_FAILED, KRB5KRB_AP_ERR_BAD_INTEGRITY,
].reduce(into: []) { $0.insert(Int32($1)) }

/// gss_display_status (RFC 2743 §2.4.1). A status may have several lines.
private func statusText(_ status: OM_uint32, _ kind: CInt) -> String {
    var lines: [String] = []
    var position: OM_uint32 = 0
    repeat {
        var minor: OM_uint32 = 0
        let line = OwnedBuffer()
        guard unsafe gss_display_status(&minor, status, kind, nil, &position, line.buffer) == GSS_S_COMPLETE else {
            break
        }
        lines.append(String(decoding: line.bytes, as: UTF8.self))
    } while position != 0 && lines.count < statusLinesMax
    return lines.joined(separator: ", ")
}

private let statusLinesMax = 8

/// Whether a major status is an error (RFC 2744 §3.9.1): one of a call or of a routine. The other bits inform.
func isError(_ major: OM_uint32) -> Bool { major & 0xFFFF_0000 != 0 }
