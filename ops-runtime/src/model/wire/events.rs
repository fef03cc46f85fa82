//! The definitions of call events.

/// The JSON text of one of the definitions.
macro_rules! definition {
    (CallEvent) => {
        r##"{
            "description": "An event of the call protocol.",
            "type": "object",
            "properties": { "id": { "description": "The payload's `requestId`.", "type": "string" } },
            "required": ["type", "id", "payload"],
            "oneOf": [
                { "properties": { "type": { "const": "call.requested" }, "payload": { "$ref": "#/$defs/CallRequested" } } },
                { "properties": { "type": { "const": "call.responded" }, "payload": { "$ref": "#/$defs/CallResponded" } } },
                { "properties": { "type": { "const": "call.completed" }, "payload": { "$ref": "#/$defs/CallCompleted" } } },
                { "properties": { "type": { "const": "call.aborted" }, "payload": { "$ref": "#/$defs/CallAborted" } } },
                { "properties": { "type": { "const": "call.error" }, "payload": { "$ref": "#/$defs/CallErrorEvent" } } }
            ]
        }"##
    };
    (CallRequested) => {
        r##"{
            "description": "A caller asks for an operation to be run.",
            "type": "object",
            "properties": {
                "requestId": { "type": "string" },
                "operationId": { "description": "`namespace.name`.", "type": "string" },
                "input": { "description": "Any JSON." },
                "parentRequestId": { "description": "Of the call that this one is part of.", "type": "string" },
                "deadline": {
                    "description": "When to give up, in milliseconds since the Unix epoch, by the caller's clock. Counts if there is no `timeLeft`.",
                    "type": "number"
                },
                "timeLeft": {
                    "description": "The time until the deadline when the request was sent, in milliseconds.",
                    "type": "number"
                },
                "windowBytes": {
                    "description": "Of a subscription, how many bytes of items that no credit was given for the caller keeps.",
                    "type": "number"
                },
                "oneResult": {
                    "description": "True if the caller takes one result: a subscription is refused.",
                    "type": "boolean"
                },
                "idleTimeout": {
                    "description": "Of a subscription, the time that it may stay silent in milliseconds.",
                    "type": "number"
                },
                "identity": { "$ref": "#/$defs/Identity" },
                "metadata": { "type": "object" }
            },
            "required": ["requestId", "operationId", "input"]
        }"##
    };
    (CallResponded) => {
        r##"{
            "description": "The result of a call, or one item of a subscription.",
            "type": "object",
            "properties": {
                "requestId": { "type": "string" },
                "output": { "$ref": "#/$defs/ResponseEnvelope" }
            },
            "required": ["requestId", "output"]
        }"##
    };
    (CallCompleted) => {
        r##"{
            "description": "A subscription ended normally.",
            "type": "object",
            "properties": {
                "requestId": { "type": "string" }
            },
            "required": ["requestId"]
        }"##
    };
    (CallAborted) => {
        r##"{
            "description": "Either side gave up the request.",
            "type": "object",
            "properties": {
                "requestId": { "type": "string" }
            },
            "required": ["requestId"]
        }"##
    };
    (CallErrorEvent) => {
        r##"{
            "description": "The call failed, or one item of a subscription did.",
            "type": "object",
            "properties": {
                "requestId": { "type": "string" },
                "code": { "type": "string" },
                "message": { "type": "string" },
                "details": { "description": "Any JSON." },
                "more": {
                    "description": "True if only one item of a subscription failed, and the subscription goes on.",
                    "type": "boolean"
                }
            },
            "required": ["requestId", "code", "message"]
        }"##
    };
    (LinkFrame) => {
        r##"{
            "description": "A frame of the call protocol that is about the link between two peers.",
            "type": "object",
            "properties": { "id": { "description": "The payload's `requestId`, if it has one.", "type": "string" } },
            "required": ["type", "payload"],
            "oneOf": [
                {
                    "properties": { "type": { "const": "link.credit" }, "payload": { "$ref": "#/$defs/LinkCredit" } },
                    "required": ["id"]
                },
                { "properties": { "type": { "const": "link.announce" }, "payload": { "$ref": "#/$defs/LinkAnnounce" } } },
                { "properties": { "type": { "const": "link.drain" }, "payload": { "type": "object" } } },
                { "properties": { "type": { "const": "link.drained" }, "payload": { "type": "object" } } },
                { "properties": { "type": { "const": "link.running" }, "payload": { "$ref": "#/$defs/LinkRunning" } } }
            ]
        }"##
    };
    (LinkCredit) => {
        r##"{
            "description": "A subscriber takes more items.",
            "type": "object",
            "properties": {
                "requestId": { "type": "string" },
                "items": { "description": "How many more.", "type": "integer", "minimum": 0, "maximum": 4294967295 }
            },
            "required": ["requestId", "items"]
        }"##
    };
    (LinkRunning) => {
        r##"{
            "description": "The requests of the receiver that the sender runs.",
            "type": "object",
            "properties": { "requestIds": { "type": "array", "items": { "type": "string" } } },
            "required": ["requestIds"]
        }"##
    };
    (LinkAnnounce) => {
        r##"{
            "description": "What the sender serves, as a change of what it said before.",
            "type": "object",
            "properties": {
                "add": { "type": "array", "items": { "$ref": "#/$defs/OperationSpec" } },
                "remove": { "description": "Ids.", "type": "array", "items": { "type": "string" } },
                "more": { "description": "Whether another part follows at once.", "type": "boolean" },
                "maxMessage": { "description": "The largest message that the sender takes, in bytes.", "type": "number" }
            }
        }"##
    };
    (Identity) => {
        r##"{
            "description": "Who calls.",
            "type": "object",
            "properties": {
                "id": { "type": "string" },
                "scopes": { "type": "array", "items": { "type": "string" } },
                "resources": {
                    "description": "Actions by resource, keyed `type:id`.",
                    "type": "object",
                    "additionalProperties": { "type": "array", "items": { "type": "string" } }
                }
            },
            "required": ["id", "scopes"]
        }"##
    };
}

pub(super) use definition;
