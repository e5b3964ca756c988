/// How the requests of a rule of `origins` use a cookie jar.
package struct CookieUse: Equatable, Sendable {
    /// What becomes of the cookies that a client sends.
    package enum ClientUse: String, CaseIterable, Sendable {
        /// They are dropped.
        case replace
        /// They go out as well, and count where names are the same.
        case merge
    }
    /// The name in `cookie_jars`.
    package let jar: String
    package let clientUse: ClientUse
    /// The jar takes the cookies that origins set.
    package let learns: Bool

    package init(jar: String, clientUse: ClientUse = .replace, learns: Bool = true) {
        self.jar = jar
        self.clientUse = clientUse
        self.learns = learns
    }
}

extension CookieUse {
    /// The end of the key of what is fetched with the jar: it is for the requests that use the jar, and for no others.
    package var keyTag: [UInt8] { Array("#cookies:\(jar)".utf8) }
}

extension CookieUse: CustomStringConvertible {
    /// `cookies of the jar portal, beside those of the client`.
    package var description: String {
        "cookies of the jar \(jar)" + (clientUse == .merge ? ", beside those of the client" : "")
            + (learns ? "" : ", which does not learn")
    }
}
