import random


def transform(data, num_sample: int, r: random.Random, dataset_name: str):
    options = "".join(f"({chr(65 + i)}) {option}\n" for i, option in enumerate(data["target_scores"]))
    text = f"{data['passage']}\n{data['question']}\n{options}Answer: "
    answer = f"({chr(65 + list(data['target_scores'].values()).index(1))})"
    return {"input": text, "output": answer, "processed_output": answer}
