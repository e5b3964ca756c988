import Rules

/// The Basic scheme (RFC 7617): a name and a password with every request, checked against an htpasswd file.
package struct Basic: AuthenticationScheme {
    private let users: HtpasswdFile
    private let groups: GroupsFile
    private let challenge: [UInt8]

    package var name: AuthenticationSchemeName { .basic }
    package func challenges(at now: Duration, after failure: AuthenticationFailure?) -> [[UInt8]] { [challenge] }

    package init(realm: String, users: HtpasswdFile, groups: GroupsFile = GroupsFile()) {
        self.users = users
        self.groups = groups
        challenge = basicChallenge(realm: realm)
    }

    package func examine(
        _ attempt: AuthenticationAttempt, _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep? {
        guard let value = attempt.credentials, let credentials = BasicCredentials(fieldValue: value) else { return nil }
        let hash = users.hash(for: credentials.user)
        switch memory.answer(for: credentials, storedAs: hash, client: attempt.client, now: attempt.now) {
        case .verified(let expiry): return .known(identity(credentials, until: expiry))
        case .refused: return .refused(.wrong)
        case .tooManyFailures: return .refused(.tooManyFailures)
        case .unknown: return .ask(.password(credentials, hash: hash))
        }
    }

    package func conclude(
        _ question: AuthenticationQuestion, _ answer: AuthenticationAnswer, _ attempt: AuthenticationAttempt,
        _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep {
        switch (question, answer) {
        case (.password(let credentials, let hash), .password(let isRight)):
            // The password of nobody is never right, whatever the helper found.
            let isValid = isRight && hash != nil
            memory.record(
                credentials, storedAs: hash, isValid: isValid, client: attempt.client, now: attempt.now)
            return isValid ? .known(identity(credentials, until: memory.expiry(now: attempt.now))) : .refused(.wrong)
        default: preconditionFailure("Basic asks for passwords alone")
        }
    }

    private func identity(_ credentials: BasicCredentials, until expiry: Duration) -> Identity {
        Identity(
            name: credentials.user, scheme: .basic, groups: groups.groups(of: credentials.user), expiry: expiry)
    }
}
