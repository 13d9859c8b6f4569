import random


def transform(data, num_sample: int, r: random.Random, dataset_name: str):
    text = f"{data['passage']} {data['question']} "
    answer = next(option for option, worth in data["target_scores"].items() if worth == 1)
    return {"input": text, "output": answer, "processed_output": answer}
