package import Message

/// A user of NTLM, and the answers of NTLMv2 ([MS-NLMP]). NTLMv1 and LM are not supported: they can be broken.
///
/// ```
/// client ── NEGOTIATE ──▶ server ── CHALLENGE ──▶ client ── AUTHENTICATE ──▶ server
/// ```
///
/// All three messages go over one connection, which is authenticated afterwards. No session key is exchanged, because HTTP neither signs nor
/// seals with it: a server that demands one gets a message without.
package struct NTLMCredential: Sendable {
    package let user: String
    package let domain: String
    private let password: Secret

    /// - Parameter domain: nil if the user may name it: `DOMAIN\user`. A user with "@" is one name, without a domain.
    package init(user: String, domain: String? = nil, password: Secret) {
        let parts = user.split(separator: "\\", maxSplits: 1, omittingEmptySubsequences: false)
        if domain == nil, parts.count == 2 {
            self.user = String(parts[1])
            self.domain = String(parts[0])
        } else {
            self.user = user
            self.domain = domain ?? ""
        }
        self.password = password
    }

    /// What NTLM calls the target and the channel: they bind the answer to one server, so that nobody can pass it on to another.
    package struct Binding: Sendable {
        /// The service principal name: `HTTP/` and the host.
        package let targetName: String
        /// `tls-server-end-point` of the connection (RFC 5929 §4): the hash of the server's certificate. Nil without TLS.
        package let endPoint: [UInt8]?

        package init(host: String, endPoint: [UInt8]?) {
            targetName = "HTTP/\(host)"
            self.endPoint = endPoint
        }
    }

    /// NEGOTIATE_MESSAGE (§2.2.1.1): the first message. It names nobody.
    package static let negotiate: [UInt8] =
        ntlmSignature + littleEndian(UInt32(1)) + littleEndian(offeredFlags.rawValue) + noName + noName + version

    /// AUTHENTICATE_MESSAGE (§2.2.1.3): the third message.
    ///
    /// - Parameters:
    ///   - clientChallenge: eight random bytes.
    ///   - time: used if the server does not say the time.
    package func authenticate(
        _ challenge: NTLMChallenge, _ binding: Binding, clientChallenge: [UInt8], at time: WallTime,
        using hashing: some Hashing
    ) throws(NTLMFault) -> [UInt8] {
        for name in [user, domain, binding.targetName] where name.utf16.count > Self.nameLengthMax {
            throw .nameTooLong
        }
        let hashing = NTLMHashing(hashing)
        var info = challenge.targetInfo ?? NTLMTargetInfo()
        let serverTime = info[.timestamp]
        if challenge.targetInfo != nil { try bind(&info, binding, hasCode: serverTime != nil, hashing) }
        let answer = try NTLMv2Answer(
            key: responseKey(hashing), serverChallenge: challenge.serverChallenge, clientChallenge: clientChallenge,
            time: serverTime ?? fileTime(time), info, hashing)
        // If the server says the time, the answer of LAN Manager stays empty (§3.1.5.1.2).
        let lanManager = serverTime == nil ? answer.lanManager : [UInt8](repeating: 0, count: 24)
        var message = body(lanManager, answer.ntlm, challenge.flags)
        if serverTime != nil {
            let code = try hashing.hmac(answer.sessionBaseKey.bytes, Self.negotiate + challenge.message + message)
            message.replaceSubrange(Self.codeRange, with: code)
        }
        return message
    }

    /// NTOWFv2 (§3.3.2).
    func responseKey(_ hashing: NTLMHashing) throws(NTLMFault) -> Secret {
        guard let text = String(validating: password.bytes, as: UTF8.self) else { throw .passwordIsNotUTF8 }
        return Secret(try hashing.hmac(try hashing.hash(.md4, utf16(text)), utf16(capitals(user) + domain)))
    }

    /// Adds to the server's attributes what binds the answer to the server (§3.1.5.1.2).
    ///
    /// - Parameter hasCode: the message has an integrity code.
    private func bind(
        _ info: inout NTLMTargetInfo, _ binding: Binding, hasCode: Bool, _ hashing: NTLMHashing
    ) throws(NTLMFault) {
        if hasCode {
            var flags = info[.flags] ?? [0, 0, 0, 0]
            flags[0] |= 2
            info[.flags] = flags
        }
        info[.channelBindings] =
            if let endPoint = binding.endPoint {
                try hashing.hash(.md5, channelBindings(endPoint))
            } else {
                [UInt8](repeating: 0, count: 16)
            }
        info[.targetName] = utf16(binding.targetName)
    }

    /// The message with zeros in the place of its integrity code.
    private func body(_ lanManager: [UInt8], _ ntlm: [UInt8], _ serverFlags: NTLMFlags) -> [UInt8] {
        let flags = serverFlags.intersection(Self.offeredFlags.union(.targetInfo))
        var fields: [UInt8] = []
        var payload: [UInt8] = []
        // The last two, the workstation and the session key, are empty.
        for value in [lanManager, ntlm, utf16(domain), utf16(user), [], []] {
            let length = littleEndian(UInt16(value.count))
            fields += length + length + littleEndian(UInt32(Self.codeRange.upperBound + payload.count))
            payload += value
        }
        return ntlmSignature + littleEndian(UInt32(3)) + fields + littleEndian(flags.rawValue)
            + (flags.contains(.version) ? Self.version : [UInt8](repeating: 0, count: 8))
            + [UInt8](repeating: 0, count: Self.codeRange.count) + payload
    }

    private static let offeredFlags: NTLMFlags = [
        .unicode, .requestTarget, .ntlm, .alwaysSign, .extendedSessionSecurity, .version, .key128, .key56,
    ]
    /// Length, capacity and offset of a name that is not sent.
    private static let noName = [UInt8](repeating: 0, count: 8)
    /// VERSION (§2.2.2.10), of use for debugging alone: 10.0, and revision 15 of NTLM.
    private static let version: [UInt8] = [10, 0, 0, 0, 0, 0, 0, 15]
    /// Of the integrity code in the third message. What it names follows.
    private static let codeRange = 72..<88
    /// In UTF-16 code units.
    private static let nameLengthMax = 1024
}

/// NTLMv2_RESPONSE and LMv2_RESPONSE (§3.3.2).
struct NTLMv2Answer {
    /// NtChallengeResponse
    let ntlm: [UInt8]
    /// LmChallengeResponse
    let lanManager: [UInt8]
    let sessionBaseKey: Secret

    init(
        key: Secret, serverChallenge: [UInt8], clientChallenge: [UInt8], time: [UInt8], _ info: NTLMTargetInfo,
        _ hashing: NTLMHashing
    ) throws(NTLMFault) {
        precondition(clientChallenge.count == 8 && time.count == 8, "challenge and time have eight bytes")
        let zeros = [UInt8](repeating: 0, count: 4)
        let covered = [1, 1, 0, 0] + zeros + time + clientChallenge + zeros + info.bytes + zeros
        let proof = try hashing.hmac(key.bytes, serverChallenge + covered)
        ntlm = proof + covered
        lanManager = try hashing.hmac(key.bytes, serverChallenge + clientChallenge) + clientChallenge
        sessionBaseKey = Secret(try hashing.hmac(key.bytes, proof))
    }
}

/// The hash functions of NTLM. What this installation lacks is a fault.
struct NTLMHashing {
    private let hashing: any Hashing

    init(_ hashing: some Hashing) { self.hashing = hashing }

    func hash(_ algorithm: HashAlgorithm, _ bytes: [UInt8]) throws(NTLMFault) -> [UInt8] {
        do { return try hashing.hash(algorithm, bytes) } catch { throw .hashUnavailable(error.algorithm) }
    }

    /// HMAC-MD5.
    func hmac(_ key: [UInt8], _ bytes: [UInt8]) throws(NTLMFault) -> [UInt8] {
        do { return try hashing.hmac(.md5, key: key, bytes) } catch { throw .hashUnavailable(error.algorithm) }
    }
}

/// gss_channel_bindings_struct (RFC 2744 §3.11) without addresses, over `tls-server-end-point` (RFC 5929 §4).
private func channelBindings(_ endPoint: [UInt8]) -> [UInt8] {
    let data = Array("tls-server-end-point:".utf8) + endPoint
    return [UInt8](repeating: 0, count: 16) + littleEndian(UInt32(data.count)) + data
}

private func utf16(_ text: String) -> [UInt8] { text.utf16.flatMap { littleEndian($0) } }

/// Capital letters as Windows makes them: one for one, and none beyond the Basic Multilingual Plane. So "ß" stays.
private func capitals(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
        let capital = scalar.properties.uppercaseMapping.unicodeScalars
        let isSimple = scalar.value < 0x1_0000 && capital.count == 1
        result.append(isSimple ? capital[capital.startIndex] : scalar)
    }
    return String(result)
}

/// 100 nanoseconds since 1601-01-01 (FILETIME), in eight bytes.
private func fileTime(_ time: WallTime) -> [UInt8] {
    let seconds = UInt64(max(0, time.secondsSinceEpoch.saturatingAdd(11_644_473_600)))
    return littleEndian(seconds &* 10_000_000 &+ UInt64(time.fraction.ticks) * 10_000_000 / UInt64(ticksPerSecond))
}
