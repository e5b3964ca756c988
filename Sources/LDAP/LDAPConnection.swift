import CLDAP
import Glibc

/// How a directory is reached.
package struct LDAPPlace: Sendable {
    /// `ldap://host:port` or `ldaps://host:port`.
    package let url: String
    /// Whether TLS begins with StartTLS (RFC 4511 §4.14). For `ldap` URLs alone.
    package let startsTLS: Bool
    /// The path of the certificates of the authorities that are trusted with TLS.
    package let authorityFile: String
    /// How long the connection, the handshake of TLS, and each answer may take.
    package let timeout: Duration

    package init(url: String, startsTLS: Bool, authorityFile: String, timeout: Duration) {
        self.url = url
        self.startsTLS = startsTLS
        self.authorityFile = authorityFile
        self.timeout = timeout
    }
}

/// Why a directory could not be asked: there is no connection, TLS failed, or no answer came.
package struct LDAPFailure: Error, Sendable, Equatable {
    /// What the library says, without control characters.
    package let text: String
}

package struct LDAPEntry: Sendable, Equatable {
    package let dn: String
    /// Under the names that were asked for.
    package let attributes: [String: [[UInt8]]]
}

/// A connection to a directory (RFC 4511). Every call blocks. One thread uses it.
///
/// Certificates are verified always. Referrals are not followed. What the system's ldap.conf, and the variables and files of a user, say about
/// verification, time limits and referrals does not count.
@safe package final class LDAPConnection {
    private let handle: OpaquePointer
    private let timeout: Duration

    /// The most bytes of one message of the directory.
    private static let messageMax: ber_len_t = 4 << 20

    /// The library and GnuTLS prepare themselves at their first use, and would not notice that two threads do so at once.
    private static let isPrepared: Bool = {
        var handle: OpaquePointer?
        guard unsafe ldap_initialize(&handle, "ldap://127.0.0.1") == LDAP_SUCCESS else { return false }
        var isServer: CInt = 0
        defer { unsafe ldap_unbind_ext_s(handle, nil, nil) }
        return unsafe ldap_set_option(handle, LDAP_OPT_X_TLS_NEWCTX, &isServer) == LDAP_OPT_SUCCESS
    }()

    /// Makes a connection, which opens with its first request; with StartTLS at once.
    package init(_ place: LDAPPlace) throws(LDAPFailure) {
        guard LDAPConnection.isPrepared else { throw LDAPFailure(text: "the library cannot be used") }
        var made: OpaquePointer?
        let code = unsafe ldap_initialize(&made, place.url)
        guard code == LDAP_SUCCESS, let handle = unsafe made else {
            throw unsafe LDAPConnection.failure(code, nil)
        }
        unsafe self.handle = unsafe handle
        timeout = place.timeout
        try setOptions(place)
        guard place.startsTLS else { return }
        let status = unsafe ldap_start_tls_s(handle, nil, nil)
        guard status == LDAP_SUCCESS else { throw unsafe LDAPConnection.failure(status, handle) }
    }

    deinit { unsafe ldap_unbind_ext_s(handle, nil, nil) }

    private func setOptions(_ place: LDAPPlace) throws(LDAPFailure) {
        var limit = LDAPConnection.timeval(place.timeout)
        var isSet = true
        func set(_ option: CInt, _ number: CInt) {
            var number = number
            if unsafe ldap_set_option(handle, option, &number) != LDAP_OPT_SUCCESS { isSet = false }
        }
        set(LDAP_OPT_PROTOCOL_VERSION, LDAP_VERSION3)
        set(LDAP_OPT_DEREF, LDAP_DEREF_NEVER)
        set(LDAP_OPT_X_TLS_REQUIRE_CERT, LDAP_OPT_X_TLS_HARD)
        set(LDAP_OPT_X_TLS_PROTOCOL_MIN, (3 << 8) + 3)
        for (option, isOn) in [(LDAP_OPT_REFERRALS, CInt(0)), (LDAP_OPT_RESTART, 1)]
        where unsafe cldap_set_flag(handle, option, isOn) != LDAP_OPT_SUCCESS { isSet = false }
        for option in [LDAP_OPT_NETWORK_TIMEOUT, LDAP_OPT_TIMEOUT]
        where unsafe ldap_set_option(handle, option, &limit) != LDAP_OPT_SUCCESS { isSet = false }
        for (option, path) in [
            (LDAP_OPT_X_TLS_CACERTFILE, Optional(place.authorityFile)), (LDAP_OPT_X_TLS_CACERTDIR, nil),
        ]
        where setPath(option, path) != LDAP_OPT_SUCCESS { isSet = false }
        if unsafe cldap_limit_messages(handle, LDAPConnection.messageMax) != 0 { isSet = false }
        // What was set counts for a context of TLS that is made from it.
        guard isSet else { throw LDAPFailure(text: "the library does not know an option") }
        var isServer: CInt = 0
        guard unsafe ldap_set_option(handle, LDAP_OPT_X_TLS_NEWCTX, &isServer) == LDAP_OPT_SUCCESS else {
            throw LDAPFailure(text: "the certificates of \(place.authorityFile) cannot be used")
        }
    }

    private func setPath(_ option: CInt, _ path: String?) -> CInt {
        guard let path else { return unsafe ldap_set_option(handle, option, nil) }
        return unsafe path.withCString { unsafe ldap_set_option(handle, option, $0) }
    }

    /// A simple bind (RFC 4513 §5.1.3).
    ///
    /// - Parameter password: not empty: without one the bind is anonymous and succeeds.
    /// - Returns: the result code (RFC 4511 §4.1.9).
    package func bind(name: String, password: [UInt8]) throws(LDAPFailure) -> Int {
        precondition(!password.isEmpty, "a bind without a password proves nothing")
        var number: CInt = 0
        var password = password
        let code = unsafe password.withUnsafeMutableBytes { bytes in
            var value = unsafe berval(
                bv_len: ber_len_t(bytes.count), bv_val: bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
            return unsafe ldap_sasl_bind(handle, name, nil, &value, nil, nil, &number)
        }
        guard code == LDAP_SUCCESS else { throw unsafe LDAPConnection.failure(code, handle) }
        let answer = try answer(to: number)
        return answer.code
    }

    /// A search (RFC 4511 §4.5.1).
    ///
    /// - Parameters:
    ///   - isWholeTree: whether the entries below `base` are searched, and not it alone.
    ///   - countMax: the most entries that the directory may return.
    /// - Returns: the result code, and the entries that came with it. References to other directories are left out.
    package func search(
        base: String, isWholeTree: Bool, filter: String, attributes: [String], countMax: Int
    ) throws(LDAPFailure) -> (code: Int, entries: [LDAPEntry]) {
        var names: [UnsafeMutablePointer<CChar>?] = unsafe attributes.map { unsafe strdup($0) } + [nil]
        defer { unsafe names.forEach { unsafe free($0) } }
        var limit = LDAPConnection.timeval(timeout)
        var number: CInt = 0
        let code = unsafe ldap_search_ext(
            handle, base, isWholeTree ? cldap_scope_subtree : cldap_scope_base, filter, &names, 0, nil, nil, &limit,
            CInt(countMax), &number)
        guard code == LDAP_SUCCESS else { throw unsafe LDAPConnection.failure(code, handle) }
        let answer = try answer(to: number)
        var entries: [LDAPEntry] = []
        var entry = unsafe ldap_first_entry(handle, answer.messages)
        while let present = unsafe entry {
            entries.append(try unsafe read(present, attributes))
            unsafe entry = unsafe ldap_next_entry(handle, present)
        }
        return (answer.code, entries)
    }

    private func read(_ entry: OpaquePointer, _ attributes: [String]) throws(LDAPFailure) -> LDAPEntry {
        guard let name = unsafe ldap_get_dn(handle, entry) else { throw LDAPFailure(text: "an entry has no name") }
        defer { unsafe ldap_memfree(name) }
        var values: [String: [[UInt8]]] = [:]
        for attribute in attributes {
            guard let list = unsafe ldap_get_values_len(handle, entry, attribute) else { continue }
            defer { unsafe ldap_value_free_len(list) }
            values[attribute] = unsafe (0..<Int(ldap_count_values_len(list))).map { index in
                guard let value = unsafe list[index]?.pointee else { return [] }
                return unsafe UnsafeBufferPointer(start: value.bv_val, count: Int(value.bv_len)).map {
                    UInt8(bitPattern: $0)
                }
            }
        }
        return unsafe LDAPEntry(dn: String(cString: name), attributes: values)
    }

    // MARK: answers

    /// All messages of an answer.
    @safe private final class Answer {
        let messages: OpaquePointer
        let code: Int

        init(_ messages: OpaquePointer, of handle: OpaquePointer) throws(LDAPFailure) {
            unsafe self.messages = unsafe messages
            var code: CInt = 0
            let status = unsafe ldap_parse_result(handle, messages, &code, nil, nil, nil, nil, 0)
            self.code = Int(code)
            guard status == LDAP_SUCCESS else { throw unsafe LDAPConnection.failure(status, handle) }
        }

        deinit { _ = unsafe ldap_msgfree(messages) }
    }

    private func answer(to number: CInt) throws(LDAPFailure) -> Answer {
        var limit = LDAPConnection.timeval(timeout)
        var messages: OpaquePointer?
        let type = unsafe ldap_result(handle, number, CInt(LDAP_MSG_ALL), &limit, &messages)
        if type > 0, let messages = unsafe messages { return try unsafe Answer(messages, of: handle) }
        if type == 0 {
            unsafe ldap_abandon_ext(handle, number, nil, nil)
            throw LDAPFailure(text: "no answer came in time")
        }
        var code: CInt = LDAP_SERVER_DOWN
        unsafe ldap_get_option(handle, LDAP_OPT_RESULT_CODE, &code)
        throw unsafe LDAPConnection.failure(code, handle)
    }

    private static func timeval(_ duration: Duration) -> Glibc.timeval {
        let (seconds, attoseconds) = duration.components
        return Glibc.timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
    }

    /// - Parameter handle: what may say more.
    private static func failure(_ code: CInt, _ handle: OpaquePointer?) -> LDAPFailure {
        var text = unsafe String(cString: ldap_err2string(code))
        var detail: UnsafeMutablePointer<CChar>?
        if let handle = unsafe handle,
            unsafe ldap_get_option(handle, LDAP_OPT_DIAGNOSTIC_MESSAGE, &detail) == LDAP_OPT_SUCCESS,
            let detail = unsafe detail
        {
            let said = unsafe String(cString: detail)
            unsafe ldap_memfree(detail)
            // So GnuTLS calls the -1 with which the library refuses a certificate.
            text +=
                said == "(unknown error code)" ? " (its certificate is not accepted)" : said.isEmpty ? "" : " (\(said))"
        }
        let shown = text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }.prefix(200)
        return LDAPFailure(text: String(String.UnicodeScalarView(shown)))
    }
}
