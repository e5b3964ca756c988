import Forwarding
import Message
import Origins
import Rules

/// What rules change in the fields of a request before an origin gets it.
///
/// An object, so that it takes the room of a reference in the many requests that nothing changes.
final class FieldChanges {
    /// Those of the rule of `origins`.
    let ofRule: [FieldChange]
    /// When the request came: the cookies of a jar change.
    let now: WallTime
    /// The fields with all changes, once they have been asked for.
    fileprivate var changed: Fields?

    init(ofRule: [FieldChange], now: WallTime) {
        self.ofRule = ofRule
        self.now = now
    }
}

extension OwnedRequest {
    /// Makes the changes that rules ask for, whatever the state of the store and whichever connection the request takes.
    ///
    /// What is sent and what selects a variant come from here, so that both are the same (`selectingFields`).
    ///
    /// - Parameters:
    ///   - hasConditions: the request goes out with validators of stored responses.
    ///   - asksForPart: the request goes out for a part of a stored response.
    /// - Returns: how many cookies of a jar it carries.
    @discardableResult
    func change(
        _ outgoing: inout OutgoingRequest, by changes: [FieldChange], hasConditions: Bool, asksForPart: Bool,
        now: WallTime
    ) -> Int {
        for change in changes { outgoing.apply(change) }
        if releaseRule?.kind.isIndex == true, !asksForPart {
            outgoing.askForIndex(fields, hasConditions: hasConditions)
        }
        return cookies.map { setCookies(of: $0, in: &outgoing, now: now) } ?? 0
    }

    /// The fields by which an origin can select a response to this request: those that it gets (RFC 9111 §4.1). A field that `Connection`
    /// names is not forwarded (RFC 9110 §7.6.1), and selects nothing.
    ///
    /// For nearly all requests these are the fields as received, and nothing is made.
    var selectingFields: Fields {
        guard fieldChanges != nil || !options.names.isEmpty else { return fields }
        if let changed = fieldChanges?.changed { return changed }
        var outgoing = OutgoingRequest(self, conditions: nil, instance: OwnedRequest.anyInstance)
        let now = fieldChanges?.now ?? WallTime(secondsSinceEpoch: 0)
        change(&outgoing, by: fieldChanges?.ofRule ?? [], hasConditions: false, asksForPart: false, now: now)
        // What Larder proves in its place is part of the key.
        if credential != nil { outgoing.remove(.authorization) }
        var result = Fields()
        outgoing.forEachField { name, value in result.append(FieldName(spelling: name), spelling: name, value) }
        fieldChanges?.changed = result
        return result
    }

    /// `Via` selects nothing, so it does not matter whose it is.
    private static let anyInstance = Instance([])

    /// Finds out what the rules change. Called again when the user is known, if rules depend on the user.
    func noteFieldChanges(by snapshot: Snapshot, now: WallTime) {
        fieldChanges = nil
        let ofRule = snapshot.origins.changesFields ? snapshot.origins.terms(for: access).fields : []
        guard !ofRule.isEmpty || cookies != nil || credential != nil || releaseRule?.kind.isIndex == true else {
            return
        }
        fieldChanges = FieldChanges(ofRule: ofRule, now: now)
    }
}
