declare namespace ops.shop {
  /**
   * Shows a pet of the shop. It may have been sold since.
   * @throws HTTP_404
   * Cut: to describe it with the detail "whole" gives all of it.
   */
  function pets_show_one(input: {
    /** @minimum 1 */
    petId: number;
    /** What to show. Everything by default. */
    fields?: ("name" | "kind" | "owner")[];
    /** @default "none" */
    "x-trace"?: string;
  }): Promise<Pet>;
  /** A pet. It is for sale. */
  type Pet = {
    /** @format int64 */
    id: number;
    /** What it is called. Not unique. @maxLength 40 */
    name: string;
    kind: Cat & { type?: "cat" } | Dog;
    /** @maxItems 2 */
    parents?: Pet[];
    labels?: { [key: string]: string };
    /** @contentEncoding base64 */
    picture?: string;
    /** @minItems 2 */
    place?: [number, number];
    /** @format date */
    "born-on"?: string | null;
  };
  type Cat = {
    type: string;
    /** @minimum 1 @maximum 9 */
    lives: number;
  };
  type Dog = Animal & { type: "dog" };
  type Animal = {
    /** @exclusiveMinimum 0 */
    weight?: number;
  };
}

declare namespace ops.shop {
  /**
   * DELETE /pets/{petId}
   * @deprecated
   */
  function delete_(input: { petId: number }): Promise<null>;
}

declare namespace ops.shop {
  /** Adds a pet. */
  function addPet(input: {
    body: PetInput;
  }): Promise<Pet>;
  /** A pet. It is for sale. */
  type PetInput = {
    /** What it is called. Not unique. @maxLength 40 */
    name: string;
    kind: Cat & { type?: "cat" } | Dog;
    /** @maxItems 2 */
    parents?: PetInput[];
    labels?: { [key: string]: string };
    /** @contentEncoding base64 */
    picture?: string;
    /** @minItems 2 */
    place?: [number, number];
    /** @format date */
    "born-on"?: string | null;
  };
  type Cat = {
    type: string;
    /** @minimum 1 @maximum 9 */
    lives: number;
  };
  type Dog = Animal & { type: "dog" };
  type Animal = {
    /** @exclusiveMinimum 0 */
    weight?: number;
  };
  /** A pet. It is for sale. */
  type Pet = {
    /** @format int64 */
    id: number;
    /** What it is called. Not unique. @maxLength 40 */
    name: string;
    kind: Cat & { type?: "cat" } | Dog;
    /** @maxItems 2 */
    parents?: Pet[];
    labels?: { [key: string]: string };
    /** @contentEncoding base64 */
    picture?: string;
    /** @minItems 2 */
    place?: [number, number];
    /** @format date */
    "born-on"?: string | null;
  };
}

declare namespace ops.shop {
  /**
   * Streams sales as they come.
   * A stream: gives its first items as a list. One that failed is `{ error }`.
   */
  function watchSales(): Promise<{
    price: number;
    pet?: Pet;
  }[]>;
  /** A pet. It is for sale. */
  type Pet = {
    /** @format int64 */
    id: number;
    /** What it is called. Not unique. @maxLength 40 */
    name: string;
    kind: Cat & { type?: "cat" } | Dog;
    /** @maxItems 2 */
    parents?: Pet[];
    labels?: { [key: string]: string };
    /** @contentEncoding base64 */
    picture?: string;
    /** @minItems 2 */
    place?: [number, number];
    /** @format date */
    "born-on"?: string | null;
  };
  type Cat = {
    type: string;
    /** @minimum 1 @maximum 9 */
    lives: number;
  };
  type Dog = Animal & { type: "dog" };
  type Animal = {
    /** @exclusiveMinimum 0 */
    weight?: number;
  };
}

declare namespace ops.shop {
  /** GET /health */
  function health(): Promise<"ok">;
}
