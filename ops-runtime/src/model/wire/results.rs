//! The definitions of results and their errors.

/// The JSON text of one of the definitions.
macro_rules! definition {
    (ResponseEnvelope) => {
        r##"{
            "description": "The result of an operation: what it gave, and where that came from.",
            "type": "object",
            "properties": {
                "data": { "description": "What the operation gave; null if it gives nothing." },
                "meta": { "$ref": "#/$defs/ResponseMeta" },
                "warnings": {
                    "description": "Where the data did not match its schema.",
                    "type": "array",
                    "items": { "$ref": "#/$defs/Warning" }
                }
            },
            "required": ["data", "meta"]
        }"##
    };
    (ResponseMeta) => {
        r##"{
            "description": "Where a result came from, told apart by `source`.",
            "oneOf": [
                { "$ref": "#/$defs/LocalMeta" },
                { "$ref": "#/$defs/HttpMeta" },
                { "$ref": "#/$defs/McpMeta" }
            ]
        }"##
    };
    (LocalMeta) => {
        r##"{
            "description": "The facts of a result of the process that answered.",
            "type": "object",
            "properties": {
                "source": { "type": "string", "const": "local" },
                "operationId": { "description": "`namespace.name`.", "type": "string" },
                "timestamp": { "description": "Milliseconds since the Unix epoch.", "type": "number", "minimum": 0 }
            },
            "required": ["source", "operationId", "timestamp"]
        }"##
    };
    (HttpMeta) => {
        r##"{
            "description": "The facts of an HTTP response.",
            "type": "object",
            "properties": {
                "source": { "type": "string", "const": "http" },
                "statusCode": { "type": "integer", "minimum": 0, "maximum": 65535 },
                "headers": {
                    "description": "By lower-case name; several of one name joined with a comma and a space.",
                    "type": "object",
                    "additionalProperties": { "type": "string" }
                },
                "contentType": { "type": "string" },
                "event": {
                    "description": "The server-sent event that carried the data.",
                    "type": "object",
                    "properties": { "type": { "type": "string" }, "id": { "type": "string" } },
                    "required": ["type", "id"]
                },
                "setCookie": {
                    "description": "The `set-cookie` headers, which cannot be joined.",
                    "type": "array",
                    "items": { "type": "string" }
                },
                "retries": { "description": "How often the request was sent again.", "type": "integer", "minimum": 0 }
            },
            "required": ["source", "statusCode", "headers", "contentType"]
        }"##
    };
    (McpMeta) => {
        r##"{
            "description": "The answer of an MCP tool.",
            "type": "object",
            "properties": {
                "source": { "type": "string", "const": "mcp" },
                "isError": { "description": "The tool ran and says that it failed.", "type": "boolean" },
                "content": { "type": "array", "items": { "$ref": "#/$defs/ContentBlock" } },
                "structuredContent": { "description": "Any JSON." },
                "_meta": { "type": "object" }
            },
            "required": ["source", "isError", "content"]
        }"##
    };
    (ContentBlock) => {
        r##"{
            "description": "One block of an MCP answer, told apart by `type`.",
            "type": "object",
            "properties": { "annotations": { "$ref": "#/$defs/Annotations" } },
            "oneOf": [
                {
                    "properties": { "type": { "const": "text" }, "text": { "type": "string" } },
                    "required": ["type", "text"]
                },
                {
                    "properties": {
                        "type": { "enum": ["image", "audio"] },
                        "data": { "description": "In base64.", "type": "string" },
                        "mimeType": { "type": "string" }
                    },
                    "required": ["type", "data", "mimeType"]
                },
                {
                    "properties": { "type": { "const": "resource" }, "resource": { "$ref": "#/$defs/ResourceContent" } },
                    "required": ["type", "resource"]
                },
                {
                    "properties": {
                        "type": { "const": "resource_link" },
                        "uri": { "type": "string" },
                        "name": { "type": "string" },
                        "description": { "type": "string" },
                        "mimeType": { "type": "string" }
                    },
                    "required": ["type", "uri", "name"]
                }
            ]
        }"##
    };
    (ResourceContent) => {
        r##"{
            "description": "The content of a resource, as text or in base64.",
            "type": "object",
            "properties": {
                "uri": { "type": "string" },
                "mimeType": { "type": "string" },
                "text": { "type": "string" },
                "blob": { "type": "string" }
            },
            "required": ["uri"]
        }"##
    };
    (Annotations) => {
        r##"{
            "description": "Hints for the reader of a block.",
            "type": "object",
            "properties": {
                "audience": { "type": "array", "items": { "type": "string" } },
                "priority": { "type": "number" },
                "lastModified": { "type": "string" }
            }
        }"##
    };
    (Warning) => {
        r##"{
            "description": "A place where the data did not match its schema.",
            "type": "object",
            "properties": {
                "pointer": { "description": "A JSON pointer into the data.", "type": "string" },
                "expected": { "type": "string" },
                "found": { "description": "What kind of value was there.", "type": "string" }
            },
            "required": ["pointer", "expected", "found"]
        }"##
    };
    (CallError) => {
        r##"{
            "description": "Why a call failed.",
            "type": "object",
            "properties": {
                "code": { "type": "string" },
                "message": { "type": "string" },
                "details": { "description": "Any JSON." }
            },
            "required": ["code", "message"]
        }"##
    };
    ($($other:tt)*) => {
        $crate::model::wire::operations::definition!($($other)*)
    };
}

pub(super) use definition;
